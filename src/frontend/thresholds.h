// How often something must have been seen before a compiled function acts on it, and how much it remembers: all numbers
// of what is learned from calls (feedback.h, varying.h, limits.h, eager_race.h,
// size_loops.h). None of them decides what a program computes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cresset::frontend::threshold {

// Of each kind of place, object or code: calls may make them anew, and each would have every call captured.
inline constexpr size_t kMostPlaces = 1000;
inline constexpr size_t kMostObjects = 4096;

// Values of one place in code (pins.h). An operator may take one of a few as it is: a dimension, of which there are as
// many as a tensor has, from either end.
inline constexpr size_t kPins = 4, kPinsOfOperator = 8, kLengthsOfLoop = 2;

// Contents of a list in state, until pieces do not look into it; and looks into it of one call that may end a piece:
// where a loop takes item after item, pieces without end cost more than a program for each length (grown.h).
inline constexpr int kContents = 6, kLooks = 12;
// Lengths of a list among the arguments, likewise (varying.h).
inline constexpr size_t kLengths = 8;

// Other texts at one place, until it is an input, and until no piece is for one text alone (varying.h): of frames,
// which successors share; of arguments.
inline constexpr int kTextsInFrames = 2, kTexts = 4, kTextsUnlooked = 12;

// How often a cached function's code did more than compute: once may be for what it was given (cached_functions.h).
inline constexpr int kDidMore = 2;

// Variants that were dropped, less one for each few calls that others served, after which nothing more is compiled
// (Worth).
inline constexpr int64_t kDropped = 64, kServedForEach = 4;
// Captures in a row of which nothing was kept that runs compiled code, and nothing learned, after which calls go by
// without one; twice as many each time, up to 2 to the power of the second (Worth). So it is after kDropped captures in
// a row between which no variant served a call.
inline constexpr int64_t kInVain = 8, kLongestRest = 16;

// Replacements in a row, of a container that is about the same tensors as the one before, by which it is taken to be
// another one at each call (varying.h).
inline constexpr int kReplaced = 4;

// Functions that a place makes of other code each time (varying.h); pieces that begin after exceptions (successor.h).
inline constexpr size_t kCodesEachTime = 2, kAfterExceptions = 4;

// Pieces of a call that is timed beside an eager one; calls before that, and pairs of calls; calls until they are timed
// again, which double up to the most (eager_race.h).
inline constexpr size_t kManyPieces = 32;
inline constexpr int64_t kWarm = 24, kPairs = 3;
inline constexpr int64_t kFirstRest = 256, kLongestEager = 1 << 16, kUntilNext = 1024;

// Sizes of a loop over sizes that are compiled when they come first; the part of a compilation's time, as its inverse,
// that eager calls of later sizes may take before they are compiled; sizes that are told apart; sizes that ran eagerly
// when the user is warned (size_loops.h).
inline constexpr size_t kSizesOfLoop = 8, kMostSizes = 4096, kManySizes = 8;
inline constexpr int kPartOfCompiling = 2;

// A capture goes through pieces that are there already, to reach what follows, no more often than this (capture_run).
inline constexpr int kRepeated = 1024;

// Modules that native stretches compile: known at a time, and forgotten after stretches without them (inner_modules.h).
inline constexpr int64_t kForgottenAfter = 16;
inline constexpr size_t kMostModules = 256;

}  // namespace cresset::frontend::threshold
