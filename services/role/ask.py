"""`python -m services.role.ask 127.0.0.1:8080`: is the role there well? Exit code 0 or 1: what a container's health check calls.

Standard library only, and little of it: it is called every few seconds.
"""

import http.client
import sys

PATIENCE_S = 10.0


def main() -> int:
    try:
        connection = http.client.HTTPConnection(sys.argv[1], timeout=PATIENCE_S)
        connection.request("GET", "/health")
        answer = connection.getresponse()
        sys.stdout.write(answer.read().decode())
    except (OSError, http.client.HTTPException, IndexError) as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
