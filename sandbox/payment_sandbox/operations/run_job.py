"""Runs a job of the shop at its time."""

from contextlib import suppress

from payment_sandbox.operations.agenda import job_event
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.jobs import KIND, Job
from payment_sandbox.projects.project import Project, ProjectReset
from payment_sandbox.projects.records import Failure


def run_job(project: Project, epoch: Epoch, job: Job) -> frozenset[str]:
    """Run a job, on this thread; return the orders with webhooks to wait for.

    If it fails, that is recorded, and it runs again at its next time.
    """
    with suppress(ProjectReset):
        with project.exclusively(epoch):
            epoch.timeline.move_to(job.at)
        epoch.jobs.running = job
        try:
            problem = job.run()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        finally:
            epoch.jobs.running = None
        _note(project, epoch, job, problem)
    pending = map(epoch.store.delivery, epoch.outbox.pending())
    return frozenset(delivery.order_id for delivery in pending if delivery is not None)


def _note(project: Project, epoch: Epoch, job: Job, problem: str | None) -> None:
    problem = project.masking.text(problem) if problem is not None else None
    shown = job_event(job, problem)
    with project.exclusively(epoch):
        if epoch.advance_log is not None:
            epoch.advance_log.append(shown)
        if problem is not None:
            epoch.journal.add_failure(
                Failure(
                    epoch.journal.next_id("failure"),
                    "",
                    KIND,
                    job.label,
                    problem,
                    job.at,
                    project.services.real.wall_now(),
                )
            )
    if problem is not None:
        project.events.publish("failed", **shown)
