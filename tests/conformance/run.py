#!/usr/bin/env python3
"""Runs the conformance cases against a gateway: our own, or anybody's by URL. README.md says how."""
import argparse
import json
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from checks import Check  # noqa: E402
from steps import Sender, Upstream, fill, nonce, wait_until  # noqa: E402

GROUPS = {"K": "keys", "T": "tenants", "S": "streams", "L": "logprobs", "D": "framing", "R": "retries",
          "B": "bodies", "V": "recording"}


class Skipped(Exception):
    pass


def load(groups):
    return [json.loads((HERE / f"{GROUPS[letter]}.json").read_text()) for letter in groups]


def missing_rows(files):
    """Rows that have neither a case nor a reason."""
    missing = []
    for file in files:
        covered = {case["id"].split(".")[0] for case in file["cases"]} | set(file.get("not_applicable", {}))
        missing += [row for row in file["rows"] if row not in covered]
    return missing


class Gateway:
    """A gateway that somebody else started."""

    def __init__(self, url):
        self.url = url.rstrip("/")

    def restart(self, mode):
        raise Skipped("needs a gateway that this program starts itself")

    def stop(self):
        pass


class OwnGateway(Gateway):
    """Fixpoint and the mock upstream, started and stopped here."""

    def __init__(self, build, profile):
        os.environ["FIXPOINT_BUILD"] = str(pathlib.Path(build).resolve())
        sys.path.insert(0, str(HERE.parent / "integration"))
        import harness
        self.harness = harness
        self.mock = harness.MockUpstream()
        root = self.mock.url.removesuffix("/v1")
        self.config = fill(profile["config"], {"mock": root})
        self.folder = None
        self.arguments = []
        self.gateway = None
        self.start()

    def start(self):
        self.gateway = self.harness.Gateway(self.config, arguments=self.arguments)
        super().__init__(f"http://127.0.0.1:{self.gateway.port}/v1")

    def restart(self, mode):
        """"record", "replay" (from what was recorded last) or "plain"."""
        import tempfile
        if mode == "record":
            self.folder = tempfile.mkdtemp(prefix="fixpoint-record-")
        self.arguments = [] if mode == "plain" else [f"--{mode}", self.folder]
        self.gateway.stop()
        try:
            self.start()
        except RuntimeError:
            self.arguments = []
            self.start()
            raise

    def stop(self):
        code = self.gateway.stop()
        self.mock.stop()
        if code != 0:
            raise RuntimeError(f"the gateway ended with {code}:\n{self.gateway.final_log[-4000:]}")


class Runner:
    def __init__(self, gateway, upstream, profile):
        self.gateway = gateway
        self.upstream = upstream
        self.profile = profile

    def run(self, case):
        """What is wrong, a list of texts."""
        lacking = set(case.get("needs", [])) - set(self.profile["abilities"])
        if lacking:
            raise Skipped(f"the profile lacks {', '.join(sorted(lacking))}")
        wrong = []
        for element in case.get("each", [{}]):
            names = {"nonce": nonce(), **element}
            self.upstream.reset()
            answers = {}
            for number, step in enumerate(case["steps"], 1):
                where = f"step {number}" + (f" {json.dumps(element)}" if element else "")
                try:
                    wrong += [f"{where}: {one}" for one in self.step(fill(step, element), names, answers)]
                except Skipped:
                    raise
                except Exception as error:  # a peer's answer may be anything
                    wrong.append(f"{where}: {type(error).__name__}: {error}")
        return wrong

    def step(self, step, names, answers):
        if "control" in step:
            self.upstream.ask("POST", "/mock/" + step["control"], {})
            return []
        if "restart" in step:
            self.gateway.restart(step["restart"])
            return []
        if "wait_s" in step:
            time.sleep(step["wait_s"])
            return []
        expect = step.get("expect", {})
        check = Check(self.profile, "anthropic" if step["to"] in ("messages", "count_tokens") else "openai")
        before = self.upstream.stats()
        got, jobs = Sender(self.gateway.url, self.profile).send(step, names)
        after = self.upstream.stats()
        for answer in got:
            check.answer(answer, expect)
        calls = after["requests"] - before["requests"]
        if expect.get("hit") is True:
            check.that(calls == 0, f"{calls} upstream calls, but the answer was there already")
            for answer in got:
                check.hit_marked(answer, True)
        elif expect.get("hit") is False:
            check.that(calls >= len(got), f"{calls} upstream calls for {len(got)} new requests")
        if "calls" in expect:
            check.that(fits_count(calls, expect["calls"]), f"{calls} upstream calls, not {expect['calls']}")
        if "aborted" in expect:
            count = before["aborted"] + expect["aborted"]
            check.that(wait_until(lambda: self.upstream.stats()["aborted"] >= count), "the upstream call goes on")
        if "upstream" in expect or expect.get("bodies_equal"):
            seen = [one for one in self.upstream.requests() if one["method"] == "POST"][-max(calls, 1):]
            if expect.get("bodies_equal"):
                sent = {job[2].decode() for job in jobs}
                check.that(seen and {one["body"] for one in seen} == sent, f"other bytes than the client's: {seen[-1:]} {sent}")
            check.upstream(seen, expect.get("upstream", {}))
        good = [answer for answer in got if answer.status == 200 and not answer.left]
        if expect.get("all_differ"):
            texts = [json.dumps(answer.said.content()) for answer in good]
            check.that(len(set(texts)) == len(texts), f"only {len(set(texts))} different answers of {len(texts)}")
        for relation in ("same_as", "other_than"):
            if relation not in expect or check.wrong:
                continue
            others = answers[expect[relation]]
            for answer, other in zip(got, others if len(others) == len(got) else others[:1] * len(got)):
                if relation == "same_as":
                    check.same(answer, other)
                else:
                    check.that(answer.said.content() != other.said.content(), "somebody else's answer")
        answers[step.get("name", "")] = got
        return check.wrong


def fits_count(count, wanted):
    return wanted[0] <= count <= wanted[1] if isinstance(wanted, list) else count == wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", help="the gateway, as SDKs want it: http://127.0.0.1:8080/v1")
    where.add_argument("--fixpoint", metavar="BUILD", help="start Fixpoint and the mock upstream from this build")
    where.add_argument("--check", action="store_true", help="only whether each row has a case or a reason")
    parser.add_argument("--upstream-control", help="the mock upstream that the gateway calls: http://127.0.0.1:9000")
    parser.add_argument("--profile", help="what the gateway can and how it says so (default: fixpoint or generic)")
    parser.add_argument("--groups", default=",".join(GROUPS), help="some of K,T,S,L,D,R,B,V")
    parser.add_argument("--case", help="only cases whose id is this, or begins with this and a dot")
    parser.add_argument("--json", action="store_true", help="the results as JSON")
    arguments = parser.parse_args()
    files = load(arguments.groups.split(","))
    if missing := missing_rows(files):
        print("rows without a case or a reason:", ", ".join(missing))
        return 1
    if arguments.check:
        return 0
    if arguments.url and not arguments.upstream_control:
        parser.error("--url needs --upstream-control")
    name = arguments.profile or HERE / "profiles" / ("fixpoint.json" if arguments.fixpoint else "generic.json")
    profile = json.loads(pathlib.Path(name).read_text())
    gateway = OwnGateway(arguments.fixpoint, profile) if arguments.fixpoint else Gateway(arguments.url)
    control = gateway.mock.url.removesuffix("/v1") if arguments.fixpoint else arguments.upstream_control.rstrip("/")
    runner = Runner(gateway, Upstream(control), profile)
    results = []
    try:
        for case in (case for file in files for case in file["cases"]):
            if arguments.case and case["id"].split(".")[0] != arguments.case and case["id"] != arguments.case:
                continue
            begin = time.monotonic()
            try:
                wrong = runner.run(case)
                result = {"id": case["id"], "result": "failed" if wrong else "passed", "why": wrong}
            except Skipped as reason:
                result = {"id": case["id"], "result": "skipped", "why": [str(reason)]}
            result["seconds"] = round(time.monotonic() - begin, 2)
            results.append(result)
            if not arguments.json:
                print(f"{result['result']:8} {case['id']:6} {case['about']}")
                for line in result["why"]:
                    print(f"                  {line[:1000]}")
    finally:
        gateway.stop()
    counts = {kind: sum(one["result"] == kind for one in results) for kind in ("passed", "failed", "skipped")}
    reasons = {row: reason for file in files for row, reason in file.get("not_applicable", {}).items()}
    if arguments.json:
        print(json.dumps({"counts": counts, "cases": results, "not_applicable": reasons}, indent=1))
    else:
        for row, reason in reasons.items():
            print(f"{'n/a':8} {row:6} {reason}")
        print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or counts["passed"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
