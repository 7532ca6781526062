"""The command of a lock in tests: for each line of its input, which is a key and a value, it writes
with the token of the lock, and says what was answered.

  fenced_writer.py PORT..."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import resp  # noqa: E402


def write(ports, key, value):
    for port in ports:
        with resp.Client(port) as client:
            answer = client.call("SET", key, value, "TOKEN", os.environ["LEASEHOLD_TOKEN"])
        if not (isinstance(answer, resp.RespError) and answer.not_executed):
            return answer
    return answer


def main():
    ports = [int(port) for port in sys.argv[1:]]
    print("token", os.environ["LEASEHOLD_TOKEN"], flush=True)
    for line in sys.stdin:
        print(write(ports, *line.split()), flush=True)


if __name__ == "__main__":
    main()
