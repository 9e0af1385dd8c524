// Lines of the log for Python's `logging`: the logger "cresset.<area>". Its handlers are Python code, which must not
// run in the middle of a capture. Lines wait for the end of the outermost compiled call, and those of other threads as
// well. Where the logger has no handler, they go to stderr at once.
#pragma once

#include <Python.h>

namespace cresset::frontend {

// receiver(None) tells whether anyone handles lines now; receiver((area, text)) takes a line.
void set_log_receiver(PyObject* receiver);
void begin_log_lines();  // at the beginning of an outermost call
void send_log_lines();   // at its end; keeps a pending exception

}  // namespace cresset::frontend
