"""Histograms as bench_client prints them, and how sure one can be of the ratio of two of them."""

import math
import random


class Histogram:
    """Values and how often each was seen; `slots` are pairs [value, count] in ascending order."""

    def __init__(self, slots=()):
        self.counts = {}
        for value, count in slots:
            self.counts[value] = self.counts.get(value, 0) + count

    @staticmethod
    def merged(histograms):
        result = Histogram()
        counts = result.counts
        for histogram in histograms:
            for value, count in histogram.counts.items():
                counts[value] = counts.get(value, 0) + count
        return result

    @property
    def count(self):
        return sum(self.counts.values())

    def quantiles(self, wanted):
        """For each q, ascending: the smallest value that a share q of all do not exceed."""
        total = self.count
        results = []
        seen = 0
        slots = iter(sorted(self.counts.items()))
        value = 0
        for q in wanted:
            rank = max(1, math.ceil(q * total))
            while seen < rank:
                slot = next(slots, None)
                if slot is None:
                    break
                value = slot[0]
                seen += slot[1]
            results.append(value)
        return results

    def quantile(self, q):
        return self.quantiles([q])[0]

    def slots(self):
        return sorted(self.counts.items())


def ratio(value, floor):
    return value / floor if floor else math.inf


def difference(value, floor):
    return value - floor


def bootstrap(pairs, statistic, resamples, seed):
    """(value, low, high): `statistic` of the numbers of all pairs, and the 95 % interval over draws of whole pairs,
    because what belongs to a pair met the same moods of the machine."""
    everything = range(pairs)
    draw = random.Random(seed)
    drawn = sorted(statistic([draw.choice(everything) for _ in everything]) for _ in range(resamples))
    low = drawn[int(0.025 * resamples)]
    high = drawn[min(resamples - 1, int(0.975 * resamples))]
    return statistic(everything), low, high


def compared(blocks, floor_blocks, q=0.5, how=ratio, resamples=1000, seed=1):
    """(value, low, high): quantile q of all blocks against that of all floor blocks, with the interval of
    bootstrap(). The two lists are pairs: of one length, in the order measured.
    """
    if len(blocks) != len(floor_blocks) or not blocks:
        raise ValueError("blocks come in pairs")

    def compare(chosen):
        return how(Histogram.merged(blocks[i] for i in chosen).quantile(q),
                   Histogram.merged(floor_blocks[i] for i in chosen).quantile(q))

    return bootstrap(len(blocks), compare, resamples, seed)


def share_of(blocks, chosen):
    return ratio(sum(blocks[i][0] for i in chosen), sum(blocks[i][1] for i in chosen))


def share(blocks, resamples=1000, seed=1):
    """(value, low, high) of an amount for each of something, such as processor time for each operation. `blocks` are
    (amount, number), one for each sweep."""
    return bootstrap(len(blocks), lambda chosen: share_of(blocks, chosen), resamples, seed)


def compared_shares(blocks, floor_blocks, resamples=1000, seed=1):
    """The same of the ratio of two such amounts. The two lists are pairs."""
    if len(blocks) != len(floor_blocks) or not blocks:
        raise ValueError("blocks come in pairs")
    return bootstrap(len(blocks), lambda chosen: ratio(share_of(blocks, chosen), share_of(floor_blocks, chosen)),
                     resamples, seed)
