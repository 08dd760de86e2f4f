"""An agent on the fleet, in Python: plan, act, look, decide, until it is done or its budget is spent.

    BERTH_URL=http://127.0.0.1:8080 BERTH_KEY=... PYTHONPATH=packages/client-python/src python3 examples/orchestrator.py

PYTHONPATH is not needed where the client's wheel is installed (docs/python.md). plan() is a stand-in for a model: it gets
the steps so far with their results, and returns the next action, or None when the task is done.
"""

import os

from berth import Berth

MOST_STEPS = 20

PROGRAM = """import sys
limit = int(sys.argv[1])
print(*[n for n in range(2, limit) if all(n % d for d in range(2, n))])
"""


def plan(steps):
    if not steps:
        return {"kind": "write", "path": "primes.py", "content": PROGRAM.replace("limit)", "limit + )")}
    action, result = steps[-1]
    if action["kind"] == "write":
        return {"kind": "exec", "command": "python3 primes.py 30", "limits": {"timeoutMs": 20_000}}
    if not result.ok and "SyntaxError" in result.text:
        return {"kind": "write", "path": "primes.py", "content": PROGRAM}
    return None


def work(tenant):
    steps = []
    while len(steps) < MOST_STEPS and (action := plan(steps)):
        # A failed command returns a result, too: the planner handles it, not an except clause.
        result = tenant.run(action)
        steps.append((action, result))
        print(f"{len(steps)}. {action['kind']}: {result.outcome}")
    return steps[-1][1].stdout


def follow(berth, tenant):
    """Output while the command runs. Files that match `artifacts` are kept, and any holder of the key can fetch them."""
    command = "for n in 1 2 3; do echo part $n | tee -a log.txt; sleep 0.1; done"
    for event in tenant.enqueue.exec(command, artifacts=["log.txt"]).events():
        if event.type == "stdout":
            print(event.text, end="")
        elif event.type == "finished":
            for artifact in event.result.artifacts:
                print(artifact.path, artifact.mime, len(berth.artifacts.read(artifact)), "bytes")


with Berth() as berth:
    # A sandbox of the task's own, empty at first. Without `scope` all of a tenant's sessions share one workspace.
    acme = berth.tenant("acme", session=f"py-{os.getpid()}", scope="session")
    try:
        print("primes:", work(acme), end="")
        follow(berth, acme)
    finally:
        acme.destroy()
