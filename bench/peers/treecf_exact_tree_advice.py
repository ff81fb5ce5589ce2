"""treecf's exact search, which proves that no cheaper point exists."""

import treecf_search

if __name__ == "__main__":
    treecf_search.main("exact", 100)
