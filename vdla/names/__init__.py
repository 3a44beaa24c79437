"""What the names stand for that users give: configs, models, targets, tuned schedules, farms."""
