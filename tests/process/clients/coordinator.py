"""What leads while it holds a lock, in tests: after its warm-up it acts every ten milliseconds and
says when. SIGTERM: it finishes what is in flight, and ends.

  coordinator.py [SECONDS OF WARM-UP]"""

import signal
import sys
import time

ACT_SECONDS = 0.01


def main():
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
    while not ending:
        time.sleep(ACT_SECONDS)
        # The clock of the machine, which all of its processes share.
        print("act", time.monotonic(), flush=True)


if __name__ == "__main__":
    main()
