#!/bin/sh
# Makes one environment a framework, so that tests/frameworks can ask the frameworks themselves.
#
#   tests/frameworks/environments.sh [NAME ...]     all of them, or those named; what is made already is skipped
#
# They lie in $PLANNER_FRAMEWORKS (default ~/.cache/planner-frameworks), about 6 GB with a CPU build of torch. On Linux the
# torch of PyPI is the CUDA build, several GB larger; PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu brings the other.
# PYTHON chooses the interpreter (3.11 or later). Slurm comes from Debian's or Ubuntu's packages, so it needs root.
set -eu

# The versions that the verdicts in tests/frameworks were given by; a new version shows there what it judges otherwise.
TORCH="torch==2.13.0"
MEGATRON="megatron-core==0.19.2"
TORCHTITAN_03="torchtitan==0.3.0"
TORCHTITAN_02="torchtitan==0.2.2"
DEEPSPEED="deepspeed==0.19.8 transformers==5.24.0" # whose models its automatic tensor parallelism divides
ACCELERATE="accelerate==1.15.0 transformers==5.24.0 deepspeed==0.19.8"
KUBERNETES="kubeflow-trainer-api==2.3.0 pyyaml"
SKYPILOT="skypilot==0.14.1"
RAY="ray==2.60.0"
SLURM="slurm-client slurmctld slurmd munge"

PYTHON=${PYTHON:-python3}
FOLDER=${PLANNER_FRAMEWORKS:-$HOME/.cache/planner-frameworks}
ALL="megatron torchtitan_03 torchtitan_02 deepspeed accelerate kubernetes skypilot ray slurm"

# A venv NAME with the requirements in it. Its mark is written last: what broke half way is made anew.
environment() {
    name=$1
    shift
    rm -rf "${FOLDER:?}/$name"
    "$PYTHON" -m venv "$FOLDER/$name"
    install "$name" "$@"
}

install() {
    name=$1
    shift
    "$FOLDER/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

# The validator of the command line is in the wheels since 0.17, which ask for Python 3.12; they run on 3.11 with the shims of the
# driver. Without dependencies: triton, 1 GB, is imported and not used, and the driver stands in for it.
make_megatron() {
    environment megatron "$TORCH" numpy packaging pyyaml typing_extensions
    packages=$("$FOLDER/megatron/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
    install megatron --no-deps --ignore-requires-python --python-version 3.12 --only-binary=:all: \
        --target "$packages" "$MEGATRON"
}

make_torchtitan_03() { environment torchtitan_03 "$TORCH" "$TORCHTITAN_03" rich; }
make_torchtitan_02() { environment torchtitan_02 "$TORCH" "$TORCHTITAN_02"; }
make_deepspeed() { environment deepspeed "$TORCH" $DEEPSPEED; }
make_accelerate() { environment accelerate "$TORCH" $ACCELERATE; }
make_kubernetes() { environment kubernetes $KUBERNETES; }
make_skypilot() { environment skypilot "$SKYPILOT"; }
make_ray() { environment ray "$RAY"; }

make_slurm() {
    rm -rf "${FOLDER:?}/slurm"
    "$PYTHON" -m venv --without-pip "$FOLDER/slurm"
    command -v slurmctld sbatch >/dev/null 2>&1 && command -v slurmd >/dev/null 2>&1 && return
    apt-get update --quiet=2
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends $SLURM
}

mkdir -p "$FOLDER"
for name in ${*:-$ALL}; do
    case " $ALL " in
    *" $name "*) ;;
    *)
        echo "there is no environment $name; choose among: $ALL" >&2
        exit 2
        ;;
    esac
    if [ -e "$FOLDER/$name/.made" ]; then
        echo "$name: is made already"
        continue
    fi
    echo "$name: being made in $FOLDER/$name"
    "make_$name"
    touch "$FOLDER/$name/.made"
done
