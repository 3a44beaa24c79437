"""Meanings of the names that users give: configs, models, targets, tuned schedules, farms."""
