"""``nvidia-smi -q -x``: names, memory and PCI Express of a node's devices.

The tags are those of dumps of drivers 418 to 580; the format has a version (``nvsmi_device_v12.dtd``) and moves, so
that each figure is looked up along its paths, old and new, and what is missing is left out.
"""

from __future__ import annotations

import re

from planner.errors import SpecError
from planner.machines._xml import Element, read_xml
from planner.machines.base import Machine, Reader

ROOT = "nvidia_smi_log"


def recognises(text: str) -> bool:
    """Tell whether a text is the log."""
    return f"<{ROOT}" in text[:4000]


def read(text: str, origin: str) -> Machine:
    """Return the devices of a node.

    Raises:
        SpecError: it is no XML, or has no devices.

    """
    root = read_xml(text, origin)
    devices = list(root.walk("gpu"))
    if not devices:
        raise SpecError.of(f"{origin}:{root.line}", "lists no gpu; is the driver loaded on that machine?")
    for number, one in enumerate(devices):
        if not one.told("product_name"):
            raise SpecError.of(f"{origin}:{one.line} gpu[{number}]", "has no product_name; take the dump anew")
    pcie = [found for one in devices if (found := _pcie(one))]
    slices = sum(one.told("mig_mode/current_mig") == "Enabled" for one in devices)
    note = f"MIG is on for {slices} of {len(devices)} devices; they are planned whole, turn it off to train on them"
    return Machine(
        vendor="nvidia",
        num_devices=len(devices),
        names=tuple(one.told("product_name") for one in devices),
        memory_gib=_memory(devices),
        pcie=tuple(pcie) if len(pcie) == len(devices) else (),
        notes=(note,) if slices else (),
    )


def _memory(devices: list[Element]) -> tuple[float, ...]:
    """Return [GiB] of each device, or nothing where one does not tell."""
    texts = [one.told("fb_memory_usage/total", "memory_usage/total") for one in devices]
    found = [re.fullmatch(r"([0-9]{1,9}) *(?:MiB|MB)", text) for text in texts]
    return tuple(float(match[1]) / 1024 for match in found if match) if all(found) else ()


def _pcie(device: Element) -> tuple[int, int] | None:
    """Return generation and lanes that device and slot allow; what is current falls when the device idles."""
    base = "pci/pci_gpu_link_info"
    generation = device.told(f"{base}/pcie_gen/max_link_gen")
    lanes = device.told(f"{base}/link_widths/max_link_width").removesuffix("x")
    if re.fullmatch("[1-9]", generation) and re.fullmatch("[1-9][0-9]?", lanes):
        return int(generation), int(lanes)
    return None


NVIDIA_XML = Reader(name="nvidia-smi -q -x", recognises=recognises, read=read)
