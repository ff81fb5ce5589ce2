"""treecf's default, a genetic search."""

import treecf_search

if __name__ == "__main__":
    treecf_search.main("genetic", 100)
