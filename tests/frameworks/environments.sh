#!/bin/sh
# Makes one environment a framework, so that tests/frameworks can ask the frameworks themselves.
#
#   tests/frameworks/environments.sh [NAME ...]     all of them, or those named; what is made already is skipped
#
# They lie in $PLANNER_FRAMEWORKS (default ~/.cache/planner-frameworks), about 7 GB with a CPU build of torch. On Linux the
# torch of PyPI is the CUDA build, several GB larger; PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu brings the other.
# PYTHON chooses the interpreter (3.11 or later). Slurm comes from Debian's or Ubuntu's packages, so it needs root.
set -eu

# The versions that the verdicts in tests/frameworks were given by; a new one shows there what it judges otherwise.
TORCH="torch==2.13.0"
pins() {
    case $1 in
    megatron) echo "$TORCH megatron-core==0.19.2" ;;
    torchtitan_03) echo "$TORCH torchtitan==0.3.0 rich" ;;
    torchtitan_02) echo "$TORCH torchtitan==0.2.2" ;;
    deepspeed) echo "$TORCH deepspeed==0.19.8 transformers==5.24.0" ;; # whose models its tensor parallelism divides
    accelerate) echo "$TORCH accelerate==1.15.0 transformers==5.24.0 deepspeed==0.19.8" ;;
    kubernetes) echo "kubeflow-trainer-api==2.3.0 pyyaml" ;;
    skypilot) echo "skypilot==0.14.1" ;;
    ray) echo "ray==2.60.0" ;;
    slurm) echo "slurm-client slurmctld slurmd munge" ;; # as the distribution has them
    esac
}

PYTHON=${PYTHON:-python3}
FOLDER=${PLANNER_FRAMEWORKS:-$HOME/.cache/planner-frameworks}
ALL="megatron torchtitan_03 torchtitan_02 deepspeed accelerate kubernetes skypilot ray slurm"

install() {
    python=$FOLDER/$1/bin/python
    shift
    "$python" -m pip install --quiet --disable-pip-version-check "$@"
}

# The validator of the command line is in the wheels since 0.17, which ask for Python 3.12; they run on 3.11 with the
# shims of the driver. Without dependencies: triton, 1 GB, is imported and not used, and the driver stands in for it.
make_megatron() {
    packages=$("$FOLDER/megatron/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
    install megatron "$1" numpy packaging pyyaml typing_extensions
    install megatron --no-deps --ignore-requires-python --python-version 3.12 --only-binary=:all: \
        --target "$packages" "$2"
}

make_slurm() {
    for command in slurmctld slurmd sbatch; do
        command -v "$command" >/dev/null 2>&1 && continue
        apt-get update --quiet=2
        DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes --no-install-recommends "$@"
        return
    done
}

# Its mark is written last, with what is in it: what broke half way, or has other pins by now, is made anew.
make_environment() {
    rm -rf "${FOLDER:?}/$1"
    "$PYTHON" -m venv "$FOLDER/$1"
    # The pins are words.
    # shellcheck disable=SC2046
    case $1 in
    megatron | slurm) "make_$1" $(pins "$1") ;;
    *) install "$1" $(pins "$1") ;;
    esac
    pins "$1" >"$FOLDER/$1/.made"
}

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "the frameworks need Python 3.11 or later; PYTHON chooses it" >&2
    exit 2
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
    if [ "$(cat "$FOLDER/$name/.made" 2>/dev/null)" = "$(pins "$name")" ]; then
        echo "$name: is made already"
        continue
    fi
    echo "$name: being made in $FOLDER/$name"
    make_environment "$name"
done
