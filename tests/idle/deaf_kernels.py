"""A kernel manager of a Jupyter server whose kernels can't always be listened to."""

from __future__ import annotations

import errno
from typing import Any, ClassVar

import zmq
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager, ServerKernelManager


class DeafKernel(ServerKernelManager):  # type: ignore[misc]
    """A real kernel. While it is named in `deaf` nobody gets a channel to it; `channels` are those made."""

    deaf: ClassVar[set[str]] = set()
    channels: ClassVar[dict[str, Any]] = {}

    def connect_iopub(self, identity: bytes | None = None) -> Any:
        if self.kernel_id in self.deaf:
            raise zmq.ZMQError(errno.EMFILE)
        self.channels[self.kernel_id] = made = super().connect_iopub(identity)
        return made


class Kernels(AsyncMappingKernelManager):  # type: ignore[misc]
    """Starts such kernels; while it is `away` it can't even name them."""

    away = False

    def list_kernel_ids(self) -> list[str]:
        if self.away:
            raise OSError(errno.EMFILE, "no more files")
        found: list[str] = super().list_kernel_ids()
        return found
