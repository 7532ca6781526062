"""What the scripts of this folder have in common: they judge a tree, or themselves by what they plant."""

import os


def main(arguments, usage, self_test, check, files):
    """The exit status. `self_test()`: (how much is planted, what was judged wrongly). `check(tree)`: the findings.
    `files(tree)`: what is looked at."""
    if arguments == ["--self-test"]:
        planted, findings = self_test()
        summary = f"{planted} planted, {len(findings)} judged wrongly"
    elif len(arguments) == 1 and os.path.isdir(arguments[0]):
        findings = check(arguments[0])
        count = sum(1 for _ in files(arguments[0]))
        if count == 0:
            findings.append("there is nothing to look at: is this the tree?")
        summary = f"{count} files, {len(findings)} findings"
    else:
        raise SystemExit(usage)
    for finding in findings:
        print(finding)
    print(summary)
    return 1 if findings else 0
