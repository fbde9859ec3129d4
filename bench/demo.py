"""`make demo`: a web on this machine, and a crawl of it. No internet is needed, and nothing leaves the machine.

Serves the synthetic web on loopback addresses, starts `controller.py` on it as a user would, and shows what the web itself saw:
whether anything was missed, forbidden, wrong or asked for twice. Arguments are handed on to the crawl.

    python -m bench.demo [--delay 0.2] [--max-pages 100] [--module jsonl] …
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEB = ("--sites", "12", "--pages", "300", "--latency-ms", "20")
SCORE = ("pages", "missed", "forbidden", "wrong", "repeats", "most_in_flight", "least_gap_s")


def main(words: list[str]) -> int:
    web = subprocess.Popen([sys.executable, str(ROOT / "bench" / "synthweb.py"), *WEB], stdout=subprocess.PIPE, text=True)
    try:
        assert web.stdout is not None
        told = json.loads(web.stdout.readline())
        print(f"A web of {told['pages']} pages on 12 sites is served at {told['seeds'][0]} and its neighbours.")
        command = ["controller.py", "--seed", told["seeds"][0], "--allow-net", "127.0.0.0/8", "--delay", "0.2", *words]
        print(f"$ python {' '.join(command)}\n", flush=True)
        code = subprocess.run([sys.executable, *command], cwd=ROOT, check=False).returncode
        with urllib.request.urlopen(f"{told['control']}/-/score", timeout=60) as answer:
            score = json.load(answer)
    finally:
        web.send_signal(signal.SIGTERM)
        web.communicate(timeout=60)
    print("\nWhat the web saw: " + ", ".join(f"{key} {score[key]}" for key in SCORE))
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        os._exit(130)
