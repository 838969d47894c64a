"""Facts as data: devices, links, frameworks, each figure with its source. Read by `planner.specs.catalog`."""
