"""The command `gristmill`."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.project import RESOURCES, RESTORING, BadInput, find_project

if TYPE_CHECKING:
    from pydantic import BaseModel

FLOWS = {
    "pipeline": "the whole journey (the default)",
    "corpus": "documents to tokens",
    "pretraining": "tokens to a base model",
    "alignment": "base model to aligned model",
    "release": "assessment, released model, report",
}


def main(argv: list[str] | None = None) -> int:
    """Run the command; status 0: done, 1: something failed, 2: bad input, 130: stopped."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.command(arguments)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `gristmill explain … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gristmill", description="Raw documents in, a released language model out, again and again."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = _command(commands, "run", _run, "bring the whole journey, or a part of it, up to date")
    flows = "; ".join(f"{name}: {what}" for name, what in FLOWS.items())
    run.add_argument("flow", nargs="?", default="pipeline", choices=FLOWS, metavar="FLOW", help=flows)
    run.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE",
        help="change a parameter for this run, which then gets a folder and a git branch of its own",
    )  # fmt: skip
    run.add_argument("--name", help="name of the run in MLflow and of its branch runs/NAME")

    rebalance = _command(
        commands, "rebalance", _rebalance, "give the mixture other shares, as a run of its own"
    )
    rebalance.add_argument("--by", help="the level: source, kind, domain, language or license")
    rebalance.add_argument(
        "--weight", action="append", default=[], metavar="VALUE=SHARE", help="of the level, as in law=0.3"
    )
    rebalance.add_argument("--temperature", type=float, metavar="T", help="of values without a weight")
    rebalance.add_argument(
        "--like", metavar="NAME|PATH", help="the shares of a run, a snapshot or a JSON file"
    )
    rebalance.add_argument("--maximum-epochs", type=float, metavar="N", help="no document is seen more often")
    rebalance.add_argument("--tokens", type=int, metavar="N", help="the size of the mixture")
    rebalance.add_argument("--name", help="name of the run in MLflow and of its branch runs/NAME")
    rebalance.add_argument("--dry-run", action="store_true", help="say what would be given, and run nothing")

    _command(commands, "ui", _ui, "start Prefect's and MLflow's servers and the deployments")

    chat = _command(commands, "chat", _chat, "talk with the released model")
    chat.add_argument("--model", type=Path, metavar="DIR", help="another model (default: artifacts/release)")
    chat.add_argument("--prompt", metavar="TEXT", help="answer this and end")
    chat.add_argument("--temperature", type=float, default=0.7, help="0: always the likeliest token")
    chat.add_argument(
        "--top-p", type=float, default=0.9, metavar="P", help="sample from this much probability"
    )
    chat.add_argument("--max-tokens", type=int, default=200, metavar="N", help="of an answer, at most")
    chat.add_argument("--seed", type=int, default=0, help="the same seed gives the same answers")

    explain = _command(commands, "explain", _explain, "tell a document's story: where it is, what dropped it")
    explain.add_argument("id", metavar="ID", help="the document's id, or its beginning")

    trace = _command(
        commands, "trace", _trace, "tell what was in a step of pretraining: documents, characters"
    )
    trace.add_argument("step", type=int, metavar="STEP", help="1, 2, …: as in the history of the losses")
    trace.add_argument("--sequence", type=int, metavar="N", help="this row of the batch only (0, 1, …)")

    plan = _command(
        commands, "plan", _plan, "tell what pretraining will need: parameters, memory, hours, cost"
    )
    plan.add_argument(
        "--on", default="here", metavar="NAME", help="an entry of accelerators in resources.yaml, or here"
    )
    plan.add_argument("--devices", type=int, default=1, metavar="N", help="how many of them")
    plan.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="as for run")
    plan.add_argument("--vocabulary", type=int, metavar="N", help="default: that of data/tokens, or encode's")
    plan.add_argument(
        "--recompute", action="store_true", help="activations computed again in the backward pass"
    )

    sweep = _command(commands, "sweep", _sweep, "show what every threshold of a rule would keep")
    sweep.add_argument("rule", metavar="RULE", help="a rule of section `clean`, or a signal")
    sweep.add_argument("--out", type=Path, metavar="DIR", help="for the page (default: reports/sweeps)")
    for column in ("sources", "kinds", "languages"):
        sweep.add_argument(
            f"--{column}", nargs="+", metavar="NAME", help="look at the documents of these only"
        )
    sweep.add_argument(
        "--examples", type=int, default=5, metavar="N", help="documents shown on either side of the bound"
    )
    sweep.add_argument("--at", type=float, metavar="VALUE", help="show them at this value, not at the bound")

    verdicts = _command(
        commands, "verdicts", _verdicts, "show the documents whose verdict a change of rules changed"
    )
    verdicts.add_argument(
        "before", nargs="?", type=Path, metavar="BEFORE",
        help="a clean layer, the folder of a run, or a changes.json (default: before the last change)",
    )  # fmt: skip
    verdicts.add_argument(
        "after", nargs="?", type=Path, metavar="AFTER", help="another such layer (default: data/clean)"
    )

    review = _command(commands, "review", _review, "draw documents to judge the rules by, or take verdicts")
    review.add_argument("verdicts", nargs="*", type=Path, metavar="FILE", help="verdicts from the page")
    review.add_argument("--removed", type=int, default=50, metavar="N", help="documents of each rule")
    review.add_argument("--kept", type=int, default=200, metavar="N", help="documents that no rule removed")
    review.add_argument("--seed", type=int, default=1, help="another one draws others")
    review.add_argument("--by-source", action="store_true", help="give each source its share")
    review.add_argument("--text-characters", type=int, default=6000, metavar="N", help="shown of a text")
    review.add_argument("--replace", action="store_true", help="give up verdicts of an earlier draw")

    crawl = _command(commands, "crawl", _crawl, "crawl a site into WARC files, or go on with it")
    crawl.add_argument("site", nargs="?", metavar="SITE", help="one of `crawl.sites` (default: the only one)")
    crawl.add_argument("--out", type=Path, metavar="DIR", help="for the WARC files (default: data/crawl)")
    crawl.add_argument("--stop-after", type=int, metavar="N", help="end this run after N pages more")
    crawl.add_argument("--fresh", action="store_true", help="remove what is saved of the site and begin anew")

    _command(commands, "advance", _advance, "let the next run go on from this one, with what is new since")

    snapshot = _command(commands, "snapshot", None, "list, compare, verify, restore and prune snapshots")
    actions = snapshot.add_subparsers(required=True, metavar="ACTION")
    _command(actions, "list", _snapshot_list, "show every snapshot that a commit or the working tree records")
    diff = _command(actions, "diff", _snapshot_diff, "tell how two snapshots differ")
    diff.add_argument("before", metavar="A", help="a snapshot's name, or its beginning")
    diff.add_argument("after", metavar="B", help="another one")
    diff.add_argument("--ids", type=Path, metavar="FILE", help="for the ids of all that differs (JSON Lines)")
    check = _command(actions, "verify", _snapshot_verify, "check the files of a snapshot and its layers")
    check.add_argument("snapshot", nargs="?", metavar="A", help="(default: that of the working tree)")
    restore = _command(actions, "restore", _snapshot_restore, "bring a snapshot's layers back into data/")
    restore.add_argument("snapshot", metavar="A", help="its name, or its beginning")
    restore.add_argument("--params", action="store_true", help="set the parameters that made it, too")
    prune = _command(actions, "prune", _snapshot_prune, "drop from the cache what storage.retention lets go")
    prune.add_argument("snapshots", nargs="*", metavar="A", help="drop the layers of these instead")
    prune.add_argument("--dry-run", action="store_true", help="only tell what would go")
    prune.add_argument("--without-copy", action="store_true", help="also what no remote has")
    prune.add_argument("--from-remotes", action="store_true", help="drop those of A from the remotes, too")

    for name, function, what in (
        ("push", _push, "copy a snapshot and what was made of it to a remote"),
        ("pull", _pull, "copy it from a remote into DVC's cache"),
    ):
        transfer = _command(commands, name, function, what)
        transfer.add_argument("snapshot", nargs="?", metavar="SNAPSHOT", help="(default: the working tree's)")
        transfer.add_argument("--cold", action="store_true", help="storage.cold in place of storage.remote")

    forget = _command(commands, "forget", _forget, "keep a document out of all later snapshots")
    forget.add_argument("id", metavar="ID", help="the document's id, or its beginning")
    forget.add_argument("--reason", default="", metavar="TEXT", help="for the record, without personal data")
    forget.add_argument("--with-duplicates", action="store_true", help="its near-duplicates as well")

    report = _command(commands, "report", _report, "show the report of the last run")
    report.add_argument("--no-open", action="store_true", help="print the path only")

    _command(commands, "doctor", _doctor, "check this machine and say how to mend what is missing")
    return parser


def _command(
    commands: Any, name: str, function: Callable[[argparse.Namespace], int] | None, summary: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(command=function)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    project = _enter_project()
    from pydantic import ValidationError

    from flows.run_parameters import RunParameters

    try:
        run = RunParameters(set=arguments.set, name=arguments.name)
    except ValidationError as error:
        raise BadInput(f"--name {arguments.name}: {error.errors()[0]['msg']}") from None
    return _start(project, arguments.flow, run, own_folder=bool(run.set))


def _rebalance(arguments: argparse.Namespace) -> int:
    like = Path(arguments.like).absolute() if arguments.like and Path(arguments.like).exists() else None
    arguments.like = str(like) if like else arguments.like
    project = _enter_project()
    from flows.rebalance_command import dry_run, parameters

    asked = parameters(arguments)
    return (
        dry_run(project, asked) if arguments.dry_run else _start(project, "rebalance", asked, own_folder=True)
    )


def _start(project: Path, flow: str, given: BaseModel, *, own_folder: bool) -> int:
    """Run a flow with what it takes, on a Prefect server that is there or is started for it."""
    from flows.process_group import end_on_sigterm
    from flows.servers import ServerFailed, prefect_for_a_run

    end_on_sigterm()
    # Readable on a terminal: the time, who speaks, what is said. The UI shows the rest.
    for kind, who in (("FLOW", "flow"), ("TASK", "task")):
        os.environ.setdefault(
            f"PREFECT_LOGGING_FORMATTERS_STANDARD_{kind}_RUN_FMT",
            f"%(asctime)s %({who}_run_name)s | %(message)s",
        )
    # Not a `with` block: Prefect sends its last logs when the interpreter exits, and needs the server until
    # then. What is registered first is called last.
    server = ExitStack()
    atexit.register(server.close)
    try:
        ready = server.enter_context(prefect_for_a_run(_work(project)))
        return _run_flow(flow, given, ready, own_folder=own_folder)
    except ServerFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _run_flow(name: str, given: BaseModel, ready: Callable[[], None], *, own_folder: bool) -> int:
    import importlib

    from flows.stage import StageFailed

    flow = getattr(importlib.import_module(f"flows.{name}"), name)
    again = "the same command goes on from what is done"
    ready()
    try:
        flow(given)
    except StageFailed as error:
        where = " in the folder of the run" if own_folder else ""
        print(f"error: {error}\nmend that; {again}{where}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"stopped; {again}", file=sys.stderr)
        return 130
    return 0


def _ui(arguments: argparse.Namespace) -> int:
    project = _enter_project()
    from flows.servers import ServerFailed
    from flows.ui import serve

    try:
        serve(project, _resources(project))
    except ServerFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _chat(arguments: argparse.Namespace) -> int:
    from tasks.release.chat import ChatError, Sampling, chat, open_model

    directory = arguments.model or _project() / "artifacts" / "release"
    try:
        sampling = Sampling(arguments.temperature, arguments.top_p, arguments.max_tokens, arguments.seed)
        chat(open_model(directory), sampling, arguments.prompt)
    except ChatError as error:
        raise BadInput(str(error)) from None
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    from flows.forget_commands import explain

    return explain(_project(), arguments.id)


def _trace(arguments: argparse.Namespace) -> int:
    from flows.training_commands import trace

    return trace(_project(), arguments.step, arguments.sequence)


def _plan(arguments: argparse.Namespace) -> int:
    from flows.training_commands import plan

    project = _project()
    return plan(project, _resources(project), arguments)


def _sweep(arguments: argparse.Namespace) -> int:
    from flows.corpus_commands import sweep

    return sweep(_project(), arguments)


def _verdicts(arguments: argparse.Namespace) -> int:
    from flows.corpus_commands import verdicts

    before, after = (path and path.absolute() for path in (arguments.before, arguments.after))
    project = _enter_project()
    return verdicts(project, _resources(project), before, after)


def _review(arguments: argparse.Namespace) -> int:
    from flows.corpus_commands import review

    arguments.verdicts = [path.absolute() for path in arguments.verdicts]
    project = _enter_project()
    return review(project, _work(project), arguments)


def _crawl(arguments: argparse.Namespace) -> int:
    from flows.corpus_commands import crawl

    out = arguments.out and arguments.out.absolute()
    project = _enter_project()
    return crawl(
        project, _work(project), arguments.site, out, stop_after=arguments.stop_after, fresh=arguments.fresh
    )


def _advance(arguments: argparse.Namespace) -> int:
    from flows.corpus_commands import advance

    return advance(_enter_project())


def _snapshot_list(arguments: argparse.Namespace) -> int:
    from flows.snapshot_commands import list_snapshots

    return list_snapshots(_enter_project())


def _snapshot_diff(arguments: argparse.Namespace) -> int:
    from flows.snapshot_diff import diff

    ids = arguments.ids and arguments.ids.absolute()
    project = _enter_project()
    return diff(project, arguments.before, arguments.after, ids, _work(project))


def _snapshot_verify(arguments: argparse.Namespace) -> int:
    from flows.snapshot_commands import verify

    return verify(_enter_project(), arguments.snapshot)


def _snapshot_restore(arguments: argparse.Namespace) -> int:
    from flows.snapshot_commands import restore

    return restore(_enter_project(), arguments.snapshot, parameters=arguments.params)


def _snapshot_prune(arguments: argparse.Namespace) -> int:
    from flows.storage_commands import prune

    return prune(_enter_project(), arguments)


def _push(arguments: argparse.Namespace) -> int:
    from flows.storage_commands import push

    return push(_enter_project(), arguments.snapshot, cold=arguments.cold)


def _pull(arguments: argparse.Namespace) -> int:
    from flows.storage_commands import pull

    return pull(_enter_project(), arguments.snapshot, cold=arguments.cold)


def _forget(arguments: argparse.Namespace) -> int:
    from flows.forget_commands import forget

    return forget(_enter_project(), arguments.id, arguments.reason, with_duplicates=arguments.with_duplicates)


def _report(arguments: argparse.Namespace) -> int:
    page = _project() / "reports" / "index.html"
    if not page.exists():
        raise BadInput(f"there is no report yet ({page}): `gristmill run` makes it")
    print(page)
    display = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if display and not arguments.no_open:
        import webbrowser

        webbrowser.open(page.as_uri())
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from flows.doctor import examine

    findings = examine(_project())
    for finding in findings:
        print(finding)
    return int(any(finding.verdict == "fail" for finding in findings))


def _enter_project() -> Path:
    project = _project()
    os.chdir(project)
    return project


def _project() -> Path:
    """The project, after what an interrupted restore of a snapshot left to be done."""
    project = find_project()
    if (project / RESTORING).exists():
        from flows.snapshots.restoring import finish_restore

        finish_restore(project)
    return project


def _resources(project: Path) -> Any:
    from tasks.parameters import ParameterError, load_resources

    try:
        return load_resources(project / RESOURCES)
    except ParameterError as error:
        raise BadInput(str(error)) from None


def _work(project: Path) -> Path:
    return project / _resources(project).work


if __name__ == "__main__":
    sys.exit(main())
