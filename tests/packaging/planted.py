"""Plants faults in a copy of the tree, one at a time: does a check find each, and none without one?"""

import pathlib
import tempfile


def judge(faults, copy_to, findings):
    """What the check gets wrong. `faults`: (file, its text, what stands there instead, a part of what must be found).
    `copy_to` fills a folder with what the check reads; `findings` checks that folder."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy_to(folder)
        wrong += [f"without a fault: {finding}" for finding in findings(folder, None)]
        for file, old, new, part in faults:
            text = (folder / file).read_text(encoding="utf-8")
            if old not in text:
                wrong.append(f"{file} has no `{old}` to plant a fault in")
                continue
            (folder / file).write_text(text.replace(old, new), encoding="utf-8")
            found = list(findings(folder, None))
            if not any(part in finding for finding in found):
                wrong.append(f"{file}, `{new}`: expected `{part}`, found {found}")
            (folder / file).write_text(text, encoding="utf-8")
    print(f"{len(faults)} faults planted")
    return wrong
