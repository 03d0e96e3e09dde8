#!/usr/bin/env python3
"""wait_for_port.py PORT [SECONDS]: wait until something answers HTTP on a port of this computer."""

import sys
import time
import urllib.error
import urllib.request


def main() -> int:
    port, seconds = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end, reason = time.monotonic() + seconds, "nothing was tried"
    while time.monotonic() < end:
        try:
            with opener.open(f"http://127.0.0.1:{port}/", timeout=2) as answer:
                print(f"Port {port} answers with {answer.status}.")
                return 0
        except urllib.error.HTTPError as error:
            print(f"Port {port} answers with {error.code}.")
            return 0
        except OSError as error:
            reason = str(error)
        time.sleep(0.2)
    print(f"Port {port} does not answer: {reason}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
