"""Work on mounts in processes of its own, because a call on a mount may hang: each has a bound."""
import multiprocessing
import os
import pickle
import select
import signal
import time


class Hang(AssertionError):
    """A call did not come back in time."""


class Job:
    """A forked process that runs function(*args)."""

    def __init__(self, function, *args):
        self.name = getattr(function, '__name__', 'job')
        self.answer = b''
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reader)
            self._run(writer, function, args)
        os.close(writer)

    @staticmethod
    def _run(writer, function, args):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        try:
            answer = (True, function(*args))
        except BaseException as error:  # pylint: disable=broad-except
            answer = (False, error)
        try:
            text = pickle.dumps(answer)
        except Exception:  # pylint: disable=broad-except
            text = pickle.dumps((False, AssertionError(repr(answer[1]))))
        while text:
            text = text[os.write(writer, text) :]
        os._exit(0)

    def ended(self):
        """Whether result() would come back at once."""
        return bool(select.select([self.reader], [], [], 0)[0])

    def result(self, seconds):
        """What the function returned; raises what it raised, or Hang."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                self.stop()
                raise Hang(f'{self.name} did not come back within {seconds} s')
            part = os.read(self.reader, 1 << 16)
            if not part:
                break
            self.answer += part
        self.stop()
        if not self.answer:
            raise AssertionError(f'{self.name} ended without an answer')
        good, value = pickle.loads(self.answer)
        if not good:
            raise value
        return value

    def stop(self):
        """Ends it now. A call that not even SIGKILL ends is left to the end of the namespace."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.close(self.reader)
            end = time.monotonic() + 5
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0 and time.monotonic() < end:
                time.sleep(0.002)
            self.pid = 0


def within(seconds, function, *args):
    return Job(function, *args).result(seconds)


def together(seconds, *calls):
    """Runs all calls (function, arg, ...) at the same time; their results in order."""
    jobs = [Job(*call) for call in calls]
    try:
        return [job.result(seconds) for job in jobs]
    finally:
        for job in jobs:
            job.stop()


def barrier(count, seconds=60):
    """For processes that are to do something at the same moment."""
    return multiprocessing.get_context('fork').Barrier(count, timeout=seconds)


def timed(function, *args):
    """(seconds, result) of a call."""
    started = time.monotonic()
    result = function(*args)
    return time.monotonic() - started, result
