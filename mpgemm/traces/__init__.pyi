# Recording the tensors of a run.
from mpgemm.traces.recording import TraceRecorder as TraceRecorder
