"""Facts as data: devices, links, frameworks, optimizers, each with its source. Read by `planner.specs.catalog`."""
