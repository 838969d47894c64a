"""``python -m planner`` is ``planner``."""

from planner.cli import main

if __name__ == "__main__":
    main()
