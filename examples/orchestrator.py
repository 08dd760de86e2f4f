"""An agent on the fleet over plain HTTP: Python 3 and its standard library, nothing to install.

    BERTH_URL=http://127.0.0.1:8080 BERTH_KEY=... python3 examples/orchestrator.py

plan() is a stand-in for a model: it is given what was done and seen so far, and gives back one action. With a tenant's key the
tenant can be left out; an admin key names it. docs/http.md has every route, a running gateway has them at /docs.
"""
import hashlib, json, os, time, uuid
import urllib.error, urllib.request

URL = os.environ.get("BERTH_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("BERTH_KEY", "")
MOST_STEPS = 20
TRIES = 6


def open_url(method, path, body=None, **headers):
    """One request. What passes (429, 503, a gateway that restarts) is tried again; anything else says what was wrong."""
    headers["Content-Type"] = "application/json"
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    data = None if body is None else json.dumps(body).encode()
    for attempt in range(TRIES):
        try:
            request = urllib.request.Request(URL + path, data, headers, method=method)
            return urllib.request.urlopen(request, timeout=120)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or attempt == TRIES - 1:
                problem = json.load(error)
                raise SystemExit(f"{error.code} {problem['code']}: {problem['detail']}")
            time.sleep(float(error.headers.get("Retry-After", 1)))
        except urllib.error.URLError:
            if attempt == TRIES - 1:
                raise
            time.sleep(2**attempt / 4)


def submit(request, wait=0, **order):
    """A job. With wait, its end if that comes in time. The Idempotency-Key makes trying again safe: it is run once."""
    order = {"tenant": "acme", **order, "request": request}
    with open_url("POST", f"/v1/jobs?wait={wait}", order, **{"Idempotency-Key": str(uuid.uuid4())}) as answer:
        return json.load(answer)


def finished(request, **order):
    job = submit(request, wait=60, **order)
    while job["state"] != "finished":
        with open_url("GET", f"/v1/jobs/{job['id']}?wait=60") as answer:
            job = json.load(answer)
    return job["result"]


def follow(job_id):
    """Every event of a job, once and in order, until its end. A connection that breaks is resumed behind the last one."""
    last, event = "", {}
    while event.get("type") != "finished":
        headers = {"Last-Event-ID": last} if last else {}
        if last:
            time.sleep(1)  # the connection broke, or the gateway said that it goes away
        try:
            with open_url("GET", f"/v1/jobs/{job_id}/events", **headers) as stream:
                for line in stream:
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    if name == "id":
                        last = value
                    elif name == "data":
                        event = json.loads(value)
                        yield event
        except OSError:
            last = last or "0-0"


def download(artifact):
    with open_url("GET", f"/v1/artifacts/{artifact['id']}") as answer:
        content = answer.read()
    assert hashlib.sha256(content).hexdigest() == artifact["sha256"]
    return content


def plan(steps):
    if not steps:
        return {"kind": "write", "path": "primes.py", "content": PROGRAM.replace("limit)", "limit + )")}
    action, outcome, seen = steps[-1]
    if action["kind"] == "write":
        return {"kind": "exec", "command": "python3 primes.py 30", "limits": {"timeoutMs": 20000}}
    if outcome.get("code") != 0 and "SyntaxError" in seen:
        return {"kind": "write", "path": "primes.py", "content": PROGRAM}
    return None


PROGRAM = """import sys
limit = int(sys.argv[1])
print(*[n for n in range(2, limit) if all(n % d for d in range(2, n))])
"""


def work(**where):
    steps = []
    while len(steps) < MOST_STEPS and (action := plan(steps)):
        result = finished(action, **where)
        value = result["value"]
        steps.append((action, result["outcome"], value.get("stdout", "") + value.get("stderr", "")))
        print(f"{len(steps)}. {action['kind']}: {result['outcome']['kind']} {result['outcome'].get('code', '')}".rstrip())
    return steps[-1][2]


if __name__ == "__main__":
    # A sandbox of the task's own, empty at first. Without `scope` all of a tenant's sessions share one workspace.
    where = {"session": f"py-{os.getpid()}", "scope": "session"}
    print("primes:", work(**where), end="")

    # Live: output while the command runs. Files that match `artifacts` are kept, and can be fetched by anybody with the key.
    command = "for n in 1 2 3; do echo part $n | tee -a log.txt; sleep 0.1; done"
    job = submit({"kind": "exec", "command": command, "artifacts": ["log.txt"]}, **where)
    for event in follow(job["id"]):
        if event["type"] == "stdout":
            print(event["text"], end="")
        elif event["type"] == "finished":
            for artifact in event["result"]["value"].get("artifacts", []):
                print(artifact["path"], artifact["mime"], len(download(artifact)), "bytes")

    finished({"kind": "destroy"}, **where)
