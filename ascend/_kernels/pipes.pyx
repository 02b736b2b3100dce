"""Discrete-event simulation of pipes that wait for flags and share memory bandwidth.

The model is stated in ascend/programs/program.py; tests/support/pipes_reference.py is the same in plain Python, the slow truth.

An operation of fixed length is placed in time as soon as the flags that it takes are known, so only transfers on the
shared channels need events in time order. They share `capacity` bytes a cycle equally, each channel's transfers up to
that channel's own rate (water filling); with one simulated core the capacity is its static share.

Steady state: when all that decides the future (places in the program, flags, times relative to now) equals what it was
some iterations ago, the rest of the loop repeats that stretch, so whole repetitions are skipped and their sums added.
"""

cimport cython
from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

cdef enum:
    PIPES = 7
    FLAGS = 19
    CHANNELS = 3
    RING = 64  # largest number of flags of one kind that are up at a time
    HISTORY = 6  # number of snapshots; the longest recognised period is one less, in iterations
    STATE = 512  # number of doubles in one snapshot
    SCALAR = 0  # pipes and flags with a meaning here: see run_pipe
    CUBE = 2
    CUBE_DONE = 15
    GO = 16

#: The constants above, for the Python code that allocates the arrays.
LAYOUT = {
    "pipes": PIPES, "flags": FLAGS, "channels": CHANNELS, "ring": RING, "history": HISTORY, "state": STATE,
    "scalar": SCALAR, "cube": CUBE, "cube_done": CUBE_DONE, "go": GO,
}

cdef enum Status:
    BLOCKED = 0
    WAITING = 1  # a transfer whose start is known
    FLOWING = 2
    FINISHED = 3


@cython.final
cdef class PipeEngine:
    """`PipeEngine` runs one phase, with the arrays of :class:`ascend.pipes.arrays.FlatPhase`; times are cycles."""

    cdef const int[::1] op_pipe, op_channel, op_takes, op_take_count, op_raises, op_raise_count
    cdef const double[::1] op_cycles, op_bytes, op_latency
    cdef const int[::1] pipe_op_start, pipe_op_count, pipe_ops
    cdef const int[::1] segment_template, loop_first, loop_end
    cdef const long long[::1] segment_repeats, loop_iterations
    cdef const double[::1] loop_active
    cdef const int[::1] loop_has_pipe, core_first_loop, core_end_loop
    cdef double[::1] op_count, op_busy, stalls
    cdef double[::1] record_start, record_end
    cdef int[::1] record_core, record_op
    cdef long long[::1] record_iteration

    cdef readonly double now, capacity
    cdef readonly long long events, records, skipped
    cdef long long goal
    cdef bint unworked  # some core has pipes to run, because the goal was reached before
    cdef int cores, operations, serial, steady, reference_pipe, recording
    cdef double[CHANNELS] channel_rate, rate, virtual_time
    cdef int[CHANNELS] flowing

    cdef int[::1] at_loop, at_segment, at_op, status
    cdef long long[::1] at_iteration, at_repeat
    cdef double[::1] free_time, start_time, flow_end
    cdef double[::1] flag_times
    cdef int[::1] flag_head, flag_count, waiter, todo, go_reason
    cdef double[::1] go_wait
    cdef double[::1] history, history_sums
    cdef int history_length, history_loop
    cdef long long history_iteration

    def __init__(self, phase, sums, state, records, *, double capacity, channel_rates, bint serial_latency,
                 bint steady_state, int reference_pipe):
        self.op_pipe, self.op_channel = phase.op_pipe, phase.op_channel
        self.op_takes, self.op_take_count = phase.op_takes, phase.op_take_count
        self.op_raises, self.op_raise_count = phase.op_raises, phase.op_raise_count
        self.op_cycles, self.op_bytes, self.op_latency = phase.op_cycles, phase.op_bytes, phase.op_latency
        self.pipe_op_start, self.pipe_op_count = phase.pipe_op_start, phase.pipe_op_count
        self.pipe_ops = phase.pipe_ops
        self.segment_template, self.segment_repeats = phase.segment_template, phase.segment_repeats
        self.loop_first, self.loop_end = phase.loop_first, phase.loop_end
        self.loop_iterations, self.loop_active = phase.loop_iterations, phase.loop_active
        self.loop_has_pipe = phase.loop_has_pipe
        self.core_first_loop, self.core_end_loop = phase.core_first_loop, phase.core_end_loop
        self.op_count, self.op_busy, self.stalls = sums
        (self.at_loop, self.at_segment, self.at_op, self.status, self.at_iteration, self.at_repeat, self.free_time,
         self.start_time, self.flow_end, self.flag_times, self.flag_head, self.flag_count, self.waiter, self.todo,
         self.go_reason, self.go_wait, self.history, self.history_sums) = state
        self.recording = records is not None
        if self.recording:
            (self.record_start, self.record_end, self.record_core, self.record_op, self.record_iteration) = records
        self.cores = self.core_first_loop.shape[0]
        self.operations = self.op_pipe.shape[0]
        self.capacity = capacity
        self.serial, self.reference_pipe = serial_latency, reference_pipe
        self.steady = steady_state and self.cores == 1 and not self.recording
        for channel in range(CHANNELS):
            self.channel_rate[channel] = channel_rates[channel]
            self.rate[channel] = self.virtual_time[channel] = 0.0
            self.flowing[channel] = 0
        self.history_length, self.history_loop, self.history_iteration = 0, -1, -1
        self.now, self.events, self.records, self.skipped = 0.0, 0, 0, 0

    def begin(self):
        """Put every pipe at its first operation and start the pipes that can start."""
        cdef int core, pipe, place
        for core in range(self.cores):
            for pipe in range(PIPES):
                place = core * PIPES + pipe
                self.at_loop[place] = self.core_first_loop[core] - 1
                self.next_loop(place, pipe, core)
                self.settle(place, pipe, core)
            self.todo[core] = (1 << PIPES) - 1
        self.unworked = True

    def run(self, long long most_events):
        """Simulate up to `most_events` more operations; return False when the phase is over."""
        cdef bint more = True
        self.goal = self.events + most_events
        with nogil:
            while more and self.events < self.goal:
                if self.unworked:
                    self.work_off()
                    continue
                more = self.step()
                if more and self.steady and not self.unworked:
                    self.skip_repetitions()
        return more

    def unfinished(self):
        """Return (core, pipe) of the pipes that still have operations; any pipe left after the end means a deadlock."""
        return [divmod(place, PIPES) for place in range(self.cores * PIPES) if self.status[place] != FINISHED]

    def end_time(self):
        """Return the cycle at which the last pipe is free."""
        return max(self.free_time)

    def blocked_on(self, int core, int pipe):
        """Return the number of the flag that a pipe lacks, or -1."""
        cdef int flag
        for flag in range(FLAGS):
            if self.waiter[core * FLAGS + flag] == pipe:
                return flag
        return -1

    # ---------------------------------------------------------------- places in the program

    cdef void next_loop(self, int place, int pipe, int core) noexcept nogil:
        """Move to the next loop that has operations for the pipe."""
        self.at_loop[place] += 1
        while self.at_loop[place] < self.core_end_loop[core] and not self.loop_has_pipe[self.at_loop[place] * PIPES + pipe]:
            self.at_loop[place] += 1
        self.at_iteration[place] = self.at_repeat[place] = self.at_op[place] = 0
        if self.at_loop[place] < self.core_end_loop[core]:
            self.at_segment[place] = self.loop_first[self.at_loop[place]]

    cdef void settle(self, int place, int pipe, int core) noexcept nogil:
        """Move from the start of a segment to the next one that has operations for the pipe."""
        while self.at_loop[place] < self.core_end_loop[core]:
            if self.at_segment[place] >= self.loop_end[self.at_loop[place]]:
                self.at_iteration[place] += 1
                if self.at_iteration[place] < self.loop_iterations[self.at_loop[place]]:
                    self.at_segment[place] = self.loop_first[self.at_loop[place]]
                else:
                    self.next_loop(place, pipe, core)
            elif self.pipe_op_count[self.segment_template[self.at_segment[place]] * PIPES + pipe] == 0:
                self.at_segment[place] += 1
            else:
                return
        self.status[place] = FINISHED

    cdef void advance(self, int place, int pipe, int core) noexcept nogil:
        self.at_op[place] += 1
        if self.at_op[place] < self.pipe_op_count[self.segment_template[self.at_segment[place]] * PIPES + pipe]:
            return
        self.at_op[place] = 0
        self.at_repeat[place] += 1
        if self.at_repeat[place] < self.segment_repeats[self.at_segment[place]]:
            return
        self.at_repeat[place] = 0
        self.at_segment[place] += 1
        self.settle(place, pipe, core)

    # ---------------------------------------------------------------- operations and flags

    cdef void work_off(self) noexcept nogil:
        """Continue where the last call stopped."""
        cdef int core
        self.unworked = False
        for core in range(self.cores):
            self.work(core)

    cdef void work(self, int core) noexcept nogil:
        """Run the pipes of a core that may be able to continue, until no pipe can or the goal is reached."""
        cdef int pipe
        while self.todo[core]:
            if self.events >= self.goal:
                self.unworked = True
                return
            for pipe in range(PIPES):
                if self.todo[core] & (1 << pipe):
                    self.todo[core] &= ~(1 << pipe)
                    self.run_pipe(core, pipe)

    cdef void run_pipe(self, int core, int pipe) noexcept nogil:
        """Place the pipe's operations in time until one lacks a flag or is a transfer on a shared channel."""
        cdef int place = core * PIPES + pipe
        cdef int op, i, flag, slot, reason
        cdef double start, binding, raised, idle
        while self.status[place] == BLOCKED:
            if self.events >= self.goal:
                self.todo[core] |= 1 << pipe
                return
            op = self.current(place, pipe)
            for i in range(self.op_take_count[op]):
                flag = core * FLAGS + self.op_takes[op * 8 + i]
                if self.flag_count[flag] == 0:
                    self.waiter[flag] = pipe
                    return
            start = binding = self.free_time[place]
            reason = -1
            for i in range(self.op_take_count[op]):
                flag = core * FLAGS + self.op_takes[op * 8 + i]
                slot = self.flag_head[flag]
                raised = self.flag_times[flag * RING + slot]
                self.flag_head[flag] = (slot + 1) % RING
                self.flag_count[flag] -= 1
                if pipe == SCALAR and self.op_takes[op * 8 + i] == CUBE_DONE:
                    self.go_wait[core] = -raised
                start = max(start, raised)
                if raised > binding + 1e-6:  # of flags raised together the first one counts, in spite of rounding
                    binding, reason = raised, self.op_takes[op * 8 + i]
            if reason >= 0:
                idle = start - self.free_time[place]
                if pipe == CUBE and reason == GO and self.go_reason[core] >= 0:
                    # The synchronisation itself waited for operands, so that part of the wait is counted for them.
                    raised = min(idle, self.go_wait[core])
                    self.stalls[pipe * FLAGS + self.go_reason[core]] += raised
                    idle -= raised
                self.stalls[pipe * FLAGS + reason] += idle
            if pipe == SCALAR:
                self.go_wait[core] += start
                self.go_reason[core] = reason if reason != CUBE_DONE else -1
            self.start_time[place] = start
            if self.op_channel[op] >= 0 and self.op_bytes[op] > 0:
                self.status[place] = WAITING
                return
            self.finish(core, pipe, op, start + self.op_cycles[op])

    cdef void finish(self, int core, int pipe, int op, double end) noexcept nogil:
        """Finish an operation: account for it, raise its flags, move its pipe to the next one."""
        cdef int place = core * PIPES + pipe
        cdef int i, flag
        cdef double ready = end + self.op_latency[op]
        self.events += 1
        self.op_count[op] += 1
        self.op_busy[op] += end - self.start_time[place]
        self.free_time[place] = ready if self.serial else end
        if self.recording and self.records < self.record_start.shape[0]:
            self.record_start[self.records] = self.start_time[place]
            self.record_end[self.records] = end
            self.record_core[self.records] = core
            self.record_op[self.records] = op
            self.record_iteration[self.records] = self.at_iteration[place]
            self.records += 1
        for i in range(self.op_raise_count[op]):
            flag = core * FLAGS + self.op_raises[op * 8 + i]
            self.flag_times[flag * RING + (self.flag_head[flag] + self.flag_count[flag]) % RING] = ready
            self.flag_count[flag] += 1
            if self.waiter[flag] >= 0:
                self.todo[core] |= 1 << self.waiter[flag]
                self.waiter[flag] = -1
        self.advance(place, pipe, core)

    # ---------------------------------------------------------------- shared channels

    cdef void share(self) noexcept nogil:
        """Share the bandwidth by water filling: every transfer gets the same rate, up to its channel's own."""
        cdef double left = self.capacity, level
        cdef int channel, count = 0, settled = 0
        cdef int[CHANNELS] done
        if self.cores == 1:
            left = self.static_share()
        for channel in range(CHANNELS):
            count += self.flowing[channel]
            done[channel] = self.flowing[channel] == 0
            self.rate[channel] = 0.0
        while count > 0:
            level = left / count
            settled = 0
            for channel in range(CHANNELS):
                if not done[channel] and self.channel_rate[channel] <= level:
                    self.rate[channel] = self.channel_rate[channel]
                    left -= self.rate[channel] * self.flowing[channel]
                    count -= self.flowing[channel]
                    done[channel] = 1
                    settled = 1
            if not settled:
                for channel in range(CHANNELS):
                    if not done[channel]:
                        self.rate[channel] = level
                return

    cdef double static_share(self) noexcept nogil:
        """Return the bandwidth of the only simulated core: an equal share among the cores active with its loads."""
        cdef int pipe, loop = -1
        for pipe in range(PIPES):
            if self.status[pipe] == FLOWING and self.at_loop[pipe] > loop:
                loop = self.at_loop[pipe]
        if loop < 0:
            return self.capacity
        return self.capacity / self.loop_active[loop]

    cdef bint step(self) noexcept nogil:
        """Move to the next start or end of a shared transfer; return False if there is none."""
        cdef int core, pipe, place, op, channel, best = -1
        cdef bint ends = False
        cdef double time = INFINITY, candidate
        for core in range(self.cores):
            for pipe in range(PIPES):
                place = core * PIPES + pipe
                if self.status[place] == FLOWING:
                    op = self.current(place, pipe)
                    channel = self.op_channel[op]
                    candidate = self.now + max(0.0, (self.flow_end[place] - self.virtual_time[channel]) / self.rate[channel])
                    if candidate < time or (candidate == time and not ends):
                        time, best, ends = candidate, place, True
                elif self.status[place] == WAITING:
                    candidate = self.start_time[place] + self.op_cycles[self.current(place, pipe)]
                    if candidate < time:
                        time, best, ends = candidate, place, False
        if best < 0:
            return False
        time = max(time, self.now)
        for channel in range(CHANNELS):
            self.virtual_time[channel] += self.rate[channel] * (time - self.now)
        self.now = time
        core, pipe = best // PIPES, best % PIPES
        op = self.current(best, pipe)
        channel = self.op_channel[op]
        if ends:
            self.flowing[channel] -= 1
            if self.flowing[channel] == 0:
                self.virtual_time[channel] = 0.0
            self.status[best] = BLOCKED
            self.finish(core, pipe, op, time)
            self.todo[core] |= 1 << pipe
            self.share()
            self.work(core)
        else:
            self.status[best] = FLOWING
            self.flow_end[best] = self.virtual_time[channel] + self.op_bytes[op]
            self.flowing[channel] += 1
            self.share()
        return True

    cdef int current(self, int place, int pipe) noexcept nogil:
        """Return the operation that a pipe runs or waits to run."""
        return self.pipe_ops[self.pipe_op_start[self.segment_template[self.at_segment[place]] * PIPES + pipe] + self.at_op[place]]

    # ---------------------------------------------------------------- steady state (one core)

    cdef void skip_repetitions(self) noexcept nogil:
        """Look for an equal earlier state, once for each iteration of the reference pipe, and skip repetitions."""
        cdef int loop = self.at_loop[self.reference_pipe], back
        cdef long long iteration = self.at_iteration[self.reference_pipe], period, times
        cdef int sums = 2 * self.operations + PIPES * FLAGS
        if self.status[self.reference_pipe] == FINISHED or self.loop_iterations[loop] < 3:
            self.history_length = 0
            return
        if loop != self.history_loop:
            self.history_length, self.history_loop = 0, loop
        elif self.history_length and iteration == self.history_iteration:
            return
        self.history_iteration = iteration
        # The newest snapshot comes first, so the others move up by one.
        for back in range(HISTORY - 1, 0, -1):
            memcpy(&self.history[back * STATE], &self.history[(back - 1) * STATE], STATE * sizeof(double))
            memcpy(&self.history_sums[back * sums], &self.history_sums[(back - 1) * sums], sums * sizeof(double))
        self.history_length = min(self.history_length + 1, HISTORY)
        self.snapshot(iteration)
        self.save_sums()
        for back in range(1, self.history_length):
            if self.same_state(back):
                period = iteration - <long long>self.history[back * STATE]
                times = self.repetitions_left(loop, period)
                if times > 0:
                    self.repeat(back, period, times, loop, sums)
                self.history_length = 0
                self.history_iteration = self.at_iteration[self.reference_pipe]
                return

    cdef void save_sums(self) noexcept nogil:
        cdef int i
        for i in range(self.operations):
            self.history_sums[i] = self.op_count[i]
            self.history_sums[self.operations + i] = self.op_busy[i]
        for i in range(PIPES * FLAGS):
            self.history_sums[2 * self.operations + i] = self.stalls[i]

    cdef double oldest_free(self) noexcept nogil:
        """Return the time before which no raised flag can delay an operation."""
        cdef double oldest = self.now
        cdef int pipe
        for pipe in range(PIPES):
            if self.status[pipe] != FINISHED:
                oldest = min(oldest, self.free_time[pipe])
        return oldest

    cdef void snapshot(self, long long iteration) noexcept nogil:
        """Write the state that determines the future, relative to now and to the iteration, into history[0]."""
        cdef int pipe, flag, i, at = 2, loop = self.at_loop[self.reference_pipe]
        cdef double oldest = self.oldest_free(), raised
        self.history[0] = <double>iteration
        self.history[1] = self.now
        for pipe in range(PIPES):
            self.history[at] = self.at_loop[pipe]
            self.history[at + 1] = self.at_iteration[pipe] - (iteration if self.at_loop[pipe] == loop else 0)
            self.history[at + 2] = self.at_segment[pipe]
            self.history[at + 3] = self.at_repeat[pipe]
            self.history[at + 4] = self.at_op[pipe]
            self.history[at + 5] = self.status[pipe]
            self.history[at + 6] = self.free_time[pipe] - self.now
            self.history[at + 7] = self.start_time[pipe] - self.now if self.status[pipe] == WAITING else 0.0
            self.history[at + 8] = 0.0
            if self.status[pipe] == FLOWING:
                self.history[at + 8] = self.flow_end[pipe] - self.virtual_time[self.op_channel[self.current(pipe, pipe)]]
            if self.at_loop[pipe] != loop and self.status[pipe] in (BLOCKED, FINISHED):
                self.history[at + 6] = 0.0
            at += 9
        for flag in range(FLAGS):
            self.history[at] = self.flag_count[flag]
            at += 1
            for i in range(min(self.flag_count[flag], 8)):
                raised = self.flag_times[flag * RING + (self.flag_head[flag] + i) % RING]
                self.history[at + i] = raised - self.now if raised > oldest else -INFINITY
            for i in range(self.flag_count[flag], 8):
                self.history[at + i] = 0.0
            at += 8

    cdef bint same_state(self, int back) noexcept nogil:
        cdef int i
        cdef double new, old
        for i in range(2, 2 + PIPES * 9 + FLAGS * 9):
            new, old = self.history[i], self.history[back * STATE + i]
            if new != old and not fabs(new - old) <= 1e-6:
                return False
        for i in range(FLAGS):
            if self.flag_count[i] > 8:
                return False
        return True

    cdef long long repetitions_left(self, int loop, long long period) noexcept nogil:
        """Return the whole periods that every pipe in the loop can skip so that it still ends the loop itself."""
        cdef long long times = self.loop_iterations[loop], left
        cdef int pipe
        for pipe in range(PIPES):
            if self.at_loop[pipe] == loop and self.status[pipe] != FINISHED:
                left = (self.loop_iterations[loop] - 2 - self.at_iteration[pipe]) // period
                times = min(times, left)
            elif self.status[pipe] != FINISHED and self.status[pipe] != BLOCKED:
                return 0
        return times

    cdef void repeat(self, int back, long long period, long long times, int loop, int sums) noexcept nogil:
        """Advance the whole state by `times` periods."""
        cdef double shift = times * (self.now - self.history[back * STATE + 1])
        cdef double oldest = self.oldest_free()
        cdef int i, pipe, flag, slot
        for i in range(self.operations):
            self.skipped += <long long>(times * (self.op_count[i] - self.history_sums[back * sums + i]))
            self.op_count[i] += times * (self.op_count[i] - self.history_sums[back * sums + i])
            self.op_busy[i] += times * (self.op_busy[i] - self.history_sums[back * sums + self.operations + i])
        for i in range(PIPES * FLAGS):
            self.stalls[i] += times * (self.stalls[i] - self.history_sums[back * sums + 2 * self.operations + i])
        for flag in range(FLAGS):
            for i in range(self.flag_count[flag]):
                slot = flag * RING + (self.flag_head[flag] + i) % RING
                if self.flag_times[slot] > oldest:
                    self.flag_times[slot] += shift
        for pipe in range(PIPES):
            if self.at_loop[pipe] == loop and self.status[pipe] != FINISHED:
                self.at_iteration[pipe] += times * period
                self.free_time[pipe] += shift
                self.start_time[pipe] += shift
        self.now += shift
