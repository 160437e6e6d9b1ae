"""The hub's side of hubgov: governed spawners, their form and their pages."""

from hubgov_spawner.governed import GovernedMixin
from hubgov_spawner.spawner import HubGovSpawner

__all__ = ["GovernedMixin", "HubGovSpawner"]
