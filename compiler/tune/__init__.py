"""Schedule search: a declared space, features, a learned model, searchers, measurement, records."""
