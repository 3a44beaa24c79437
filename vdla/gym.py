"""Designs as an environment of Gymnasium: ``import gymnasium, vdla.gym``."""

from vdla.api.gym import ILLEGAL, STEPS, DesignEnv, GymDependencyError

__all__ = ["ILLEGAL", "STEPS", "DesignEnv", "GymDependencyError"]
