"""Leases for leases.py: grants them, renews them, sees them end. Load that has to be fast is made by bench_client."""

import json
import math
import subprocess
import time

from cluster import MeasureError, Resp

# From which bench_client counts, and where ids of ten digits begin.
FIRST_ID = 1_000_000_000
# Most that one command takes.
COMMAND_IDS_MAX = 4096
PIPELINE = 512
# Between two looks at what is left.
LOOK_S = 0.002
RENEWAL_WARMUP_S = 0.5


class Leases:
    """Leases with ids in a row. `named`: with a name and a holder each."""

    def __init__(self, port, count, ttl_s, first=FIRST_ID, named=False):
        self.connection = Resp(port)
        self.count = count
        self.ttl_s = ttl_s
        self.ttl_ms = int(ttl_s * 1000)
        self.first = first
        self.named = named
        # When the newest renewal of each was sent and answered.
        self.sent = [0.0] * count
        self.answered = [0.0] * count

    def close(self):
        self.connection.close()

    def grant(self):
        renewed = time.monotonic()
        for begin in range(0, self.count, PIPELINE):
            end = min(begin + PIPELINE, self.count)
            self.connection.pipeline([self._grant_of(lease) for lease in range(begin, end)])
            # The first ones must not end before the last ones begin.
            if time.monotonic() - renewed > self.ttl_s / 3:
                renewed = time.monotonic()
                self._renew_up_to(end)

    def renew(self):
        """All of them, in the order of their ids."""
        self._renew_up_to(self.count)

    def renew_one(self, lease):
        self._renew(lease, lease + 1)

    def watch(self, give_up):
        """(when each was seen to have ended, the pauses between two looks), in seconds. They have to
        have been renewed in the order of their ids: then they end in it, and the first one that is left
        tells of all before it. That is one small read for each look, however many leases there are."""
        seen = [0.0] * self.count
        gone = 0
        looks = [time.monotonic()]
        while gone < self.count:
            left = self.connection.command("LEASE.LIST", "AFTER", self.first + gone - 1, "COUNT", 1)
            looks.append(time.monotonic())
            front = min(left[0][0] - self.first, self.count) if left else self.count
            seen[gone:front] = [looks[-1]] * (front - gone)
            gone = front
            if looks[-1] > give_up:
                raise MeasureError(f"{self.count - gone} of {self.count} leases have not ended")
            time.sleep(LOOK_S)
        return seen, [after - before for before, after in zip(looks, looks[1:])]

    def _grant_of(self, lease):
        words = ["LEASE.GRANT", self.ttl_ms, "ID", self.first + lease]
        if self.named:
            words += ["NAME", f"lease:{lease:010}", "HOLDER", f"client-{lease % 1000:03}"]
        return words

    def _renew_up_to(self, end):
        for begin in range(0, end, COMMAND_IDS_MAX):
            self._renew(begin, min(begin + COMMAND_IDS_MAX, end))

    def _renew(self, begin, end):
        sent = time.monotonic()
        ttls = self.connection.command("LEASE.RENEW", *range(self.first + begin, self.first + end))
        answered = time.monotonic()
        lost = sum(ttl != self.ttl_ms for ttl in ttls)
        if lost:
            raise MeasureError(f"{lost} leases ended before they could be renewed; measure again on a quieter machine")
        self.sent[begin:end] = [sent] * (end - begin)
        self.answered[begin:end] = [answered] * (end - begin)


class RenewalLoad:
    """bench_client, which renews all leases in every third of their time to live. `ids`: leases in one
    command; `burst`: commands in one pipeline."""

    def __init__(self, programs, port, leases, ids, burst, seconds):
        self.seconds = seconds
        # In commands a second.
        self.rate = math.ceil(3 * leases.count / leases.ttl_s / ids)
        self.child = subprocess.Popen(
            [str(word) for word in (
                programs / "bench_client", "--leases", leases.count, "--ttl-ms", leases.ttl_ms,
                "renew", "--address", f"127.0.0.1:{port}", "--rate", self.rate, "--ids", ids,
                "--burst", burst, "--warmup-ms", int(RENEWAL_WARMUP_S * 1000), "--duration-ms", int(seconds * 1000),
                "--in-flight-max", leases.count)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def stop(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.communicate()

    def result(self):
        """Waits for its end. Worthless is a load that missed a lease, or was not as fast as it had to be."""
        out, err = self.child.communicate()
        if self.child.returncode != 0:
            raise MeasureError(f"renewals: {err.strip()}")
        result = json.loads(out)
        if result["failures"]:
            raise MeasureError(f"{result['failures']} renewals failed, the first with "
                               f"{result['first_failure'][:200]!r}")
        if result["overflows"] or result["elapsed_ns"] > (self.seconds + 1) * 1e9:
            raise MeasureError(f"{self.rate} commands a second were too many: {result['overflows']} were not sent, "
                               f"and {result['elapsed_ns'] / 1e9:.1f} s passed instead of {self.seconds:g}")
        return result
