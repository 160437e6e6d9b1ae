"""What a granted session gets: its environment, and the device nodes of its cards."""

from __future__ import annotations

from pathlib import Path

from hubgov.core.model import Allocation, Workload
from hubgov.core.policy import Policy
from hubgov.core.state import State
from hubgov.engines.base import mark

_SHARED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")


_CUDA, _ASCEND = "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"
_ASCEND_VENDORS = ("huawei", "ascend")


def variables(
    policy: Policy, workload: Workload, allocation: Allocation, *, service_url: str, site: str
) -> dict[str, str]:
    """What a session or a job is told: its cards, who it is, where the service is, which session it resumes.

    Cards by UUID in their vendor's variable; empty, not absent, where none was granted: a session without the
    variable would see every card. Ports and the variables of gangs are not set yet.
    """
    flavor = policy.flavors.get(allocation.flavor or "")
    mine = _ASCEND if flavor is not None and flavor.vendor.lower() in _ASCEND_VENDORS else _CUDA
    found = {_CUDA: "", _ASCEND: "", mine: ",".join(share.uuid for share in allocation.devices)}
    found |= {
        "HUBGOV_WORKLOAD_ID": workload.id,
        "HUBGOV_ALLOCATION_ID": mark(site, allocation),
        "HUBGOV_URL": service_url,
    }
    if workload.request.resumes is not None:
        found["HUBGOV_RESUME_FROM"] = workload.request.resumes
    return found


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
