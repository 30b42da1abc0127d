"""The same call in several threads."""

import threading


def in_threads(call, n=2):
    """Call it in as many threads at once, and wait for all of them."""
    threads = [threading.Thread(target=call) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
