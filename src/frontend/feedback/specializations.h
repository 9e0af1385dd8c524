// Code which specializes symbolic numbers: an index into a Python list, a number formatted by C code, a number which a
// torch operator accepts only as a plain value. When captures required different values a few times, the segment ends
// instead and the operation runs in CPython. Its result is an input of the next segment.
//
// The count is per code object and not per instruction: only the first specializing instruction is seen, since the
// number is plain afterwards. torch operators are counted individually, because most operators in the same code accept
// symbols. The record belongs to the compiled function (feedback.h).
#pragma once

#include <vector>

#include "frontend/cpython/py_ref.h"
#include "frontend/eval/hooks.h"

namespace cresset::frontend {

std::vector<PyRef> unspecialized_among(const CressetCall& call);
// Records that the instruction in progress specializes the number, with a result which may be a segment input
// (is_plain_result).
void note_specialization(const CressetActivation& activation, PyObject* number);
void note_specialization(const CressetActivation& activation, const CressetCall& call, PyObject* number);
bool is_plain_result(PyObject* object);
// All functions here need the GIL.
bool specializes_too_often(const CressetActivation& activation);
bool specializes_too_often(const CressetActivation& activation, const CressetCall& call);
// The instruction in progress begins a loop whose length is a symbolic number, and which the segment specializes.
// Returns whether the loop had other lengths before. The loop is then evaluated with symbolic bounds, and a segment
// covers a single iteration.
bool is_of_many_lengths(const CressetActivation& activation, int64_t length);

// Loops which a program unrolls completely because sizes decide their length: over a range or rows of symbolic length,
// or while a condition on sizes holds. The functions record the loops of this thread's capture since its beginning.
void begin_loops();
void note_loop();
void note_rows(PyObject* iterated);
void note_decision(const CressetActivation& activation);  // on a symbolic number
void note_frame(const CressetActivation& activation);     // a frame starts
bool met_loops();

}  // namespace cresset::frontend
