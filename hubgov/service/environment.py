"""What a granted session gets: the environment of the contract, and the device nodes of its cards."""

from __future__ import annotations

from pathlib import Path

from hubgov.core.model import Allocation, Workload
from hubgov.core.state import State
from hubgov.engines.base import mark

_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


def variables(workload: Workload, allocation: Allocation, *, service_url: str, site: str) -> dict[str, str]:
    """The variables of 4-interfaces. Devices by UUID; empty, not absent, when none was granted: a session
    without the variable would see every card."""
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(share.uuid for share in allocation.devices),
        "HUBGOV_WORKLOAD_ID": workload.id,
        "HUBGOV_ALLOCATION_ID": mark(site, allocation),
        "HUBGOV_URL": service_url,
    }


def device_nodes(state: State, allocation: Allocation) -> tuple[str, ...]:
    """The device files that the granted cards need; none for simulated ones."""
    nodes = []
    for share in allocation.devices:
        device = next((d for d in state.nodes[share.node].devices if d.key == share.key and not d.simulated), None)
        if device is not None and device.minor is not None:
            nodes.append(f"/dev/nvidia{device.minor}")
    if not nodes:
        return ()
    return (*nodes, *(node for node in _SHARED_NODES if Path(node).exists()))
