"""The harness judges manifests as the models of their APIs do."""

from collections.abc import Callable

import pytest

from frameworks.asking import Answer, Validator

pytestmark = pytest.mark.frameworks

Ask = Callable[..., Answer]

TRAIN_JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: plan}
spec:
  runtimeRef: {name: torch-distributed, kind: ClusterTrainingRuntime, apiGroup: trainer.kubeflow.org}
  trainer:
    image: pytorch/pytorch
    command: [torchrun, train.py]
    numNodes: 2
    numProcPerNode: 8
    env: [{name: NCCL_DEBUG, value: "INFO"}]
    resourcesPerNode: {limits: {nvidia.com/gpu: "8"}}
"""
JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: plan}
spec:
  network: {enableDNSHostnames: true, publishNotReadyAddresses: true}
  replicatedJobs:
  - name: h100
    replicas: 1
    template:
      spec:
        completions: 2
        parallelism: 2
        completionMode: Indexed
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
            containers:
            - name: train
              image: pytorch/pytorch
              command: [torchrun]
              env: [{name: NODE_OFFSET, value: "0"}]
              resources: {limits: {nvidia.com/gpu: "8"}}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: plan}\nspec: {clusterIP: None}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plan}\ndata: {launch.sh: exec torchrun}\n"


@pytest.fixture
def ask(validator: Callable[[str], Validator]) -> Ask:
    kubernetes = validator("kubernetes")
    return lambda text: kubernetes.ask(text=text)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (TRAIN_JOB, ["TrainJob"]),
        (JOB_SET, ["JobSet"]),
        (f"{CONFIG_MAP}---\n{JOB_SET}", ["ConfigMap", "JobSet"]),
        (f"{SERVICE}---\n{TRAIN_JOB}", ["Service", "TrainJob"]),
    ],
)
def test_takes(ask: Ask, text: str, kinds: list[str]) -> None:
    answer = ask(text)
    assert answer.accepted, answer.message
    assert answer.facts == {"kinds": kinds}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TRAIN_JOB.replace("numNodes", "numNode"), "spec.trainer.numNode"),
        (JOB_SET.replace("nodeSelector", "nodeSelectors"), "template.spec.template.spec.nodeSelectors"),
        (TRAIN_JOB.replace("numNodes: 2", 'numNodes: "2"'), "should be a valid integer"),
        (TRAIN_JOB.replace("numProcPerNode: 8", "numProcPerNode: auto"), "should be a valid integer"),
        (JOB_SET.replace('value: "0"', "value: 0"), "should be a valid string"),
        (JOB_SET.replace("containers:", "containerz:"), "should be a valid list"),
        (JOB_SET.replace("Indexed", "indexed"), "must be one of enum values ('Indexed', 'NonIndexed')"),
        (TRAIN_JOB.replace("TrainJob", "PyTorchJob"), "no model of PyTorchJob"),
        ("a: [", "expected the node content"),
    ],
)
def test_refuses(ask: Ask, text: str, says: str) -> None:
    answer = ask(text)
    assert not answer.accepted
    assert says in answer.message


@pytest.mark.parametrize(
    "text",
    [
        TRAIN_JOB.replace("NCCL_DEBUG", "PET_NNODES"),  # the trainer sets it itself, and a server refuses it
        TRAIN_JOB.replace("name: plan", "name: Plan_1"),  # no name of a host
        JOB_SET.replace("parallelism: 2", "parallelism: 3"),  # more pods than indices
        JOB_SET.replace("replicas: 1", "replicas: -1"),
    ],
)
def test_does_not_catch(ask: Ask, text: str) -> None:
    assert ask(text).accepted
