// Code of a program in which a symbolic number must be one value: an index into a list of Python's, a number that C
// code makes a text of, one that an operator of torch takes as it is. Where another value was wanted at each of a few
// captures, the piece ends instead, and the operation is done natively: what it gives is an input of the next piece.
// A place in code does not count by itself: past the first one that pins a number, others of the same code would not
// be seen to. An operator of torch does: most that code calls leave numbers open. The function's own (feedback.h).
#pragma once

#include <vector>

#include "frontend/eval/hooks.h"
#include "frontend/py_ref.h"

namespace cresset::frontend {

// A symbolic number of which no guard has made one value.
bool is_unpinned(PyObject* number);
std::vector<PyRef> unpinned_among(const CressetCall& call);
// The instruction in progress pins the number, for a result that may be an input of a piece (is_plain_result).
void note_pin(const CressetActivation& activation, PyObject* number);
void note_pin(const CressetActivation& activation, const CressetCall& call, PyObject* number);
bool is_plain_result(PyObject* object);
// Under the GIL, as all of this.
bool pins_too_often(const CressetActivation& activation);
bool pins_too_often(const CressetActivation& activation, const CressetCall& call);
// The instruction in progress begins a loop of a length that a symbolic number decides, and that a piece is for.
// Whether it was of others before: the loop is evaluated over symbolic numbers then, of which a piece has one round.
bool is_of_many_lengths(const CressetActivation& activation, int64_t length);

// Loops whose rounds are all in one program, since sizes decide how many there are: over a range or rows of symbolic
// length, or as long as a condition on sizes holds. What this thread's capture met of them, since it began.
void begin_loops();
void note_loop();
void note_rows(PyObject* iterated);
void note_decision(const CressetActivation& activation);  // on a symbolic number
void note_frame(const CressetActivation& activation);     // it starts
bool met_loops();

}  // namespace cresset::frontend
