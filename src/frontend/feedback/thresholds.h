// How often something must have been seen before a compiled function acts on it, and how much it remembers: all numbers
// of what is learned from calls (feedback.h, automatic_dynamic.h, limits.h, eager_fallback_timing.h,
// size_loops.h). None of them decides what a program computes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cresset::frontend::threshold {

// Limits per kind of record, because calls may create new objects or code each time, and each would trigger captures.
inline constexpr size_t kMostPlaces = 1000;
inline constexpr size_t kMostObjects = 4096;

// Specialized values per place in code (specializations.h). An operator may specialize a few values: a dimension
// argument has as many values as the tensor has dimensions, counted from either end.
inline constexpr size_t kSpecializations = 4, kSpecializationsOfOperator = 8, kLengthsOfLoop = 2;

// Different contents of a list in state before segments stop inspecting it, and inspections per call which may end a
// segment. In a loop over the items, an unlimited number of segments would cost more than a program per length
// (growing_containers.h).
inline constexpr int kContents = 6, kLooks = 12;
// Different lengths of a list among the arguments before segments stop inspecting it (automatic_dynamic.h).
inline constexpr size_t kLengths = 8;

// Different strings at a place, before the string becomes an input, and before no segment specializes it
// (automatic_dynamic.h). The first limit is for frames, which resume entries share; the second is for arguments.
inline constexpr int kStringsInFrames = 2, kStrings = 4, kStringsUninspected = 12;

// Runs of a cached function's code which did more than compute. A single run may depend on its arguments
// (session_lru_cache.h).
inline constexpr int kDidMore = 2;

// Dropped cache entries, reduced by 1 for every kServedForEach served calls, after which compilation stops (Worth).
inline constexpr int64_t kDropped = 64, kServedForEach = 4;
// Consecutive captures without new compiled code and without new feedback, after which calls skip the capture. The
// number of skipped calls doubles each time, up to 2 to the power of kLongestRest (Worth). The same happens after
// kDropped consecutive captures between which no entry served a call.
inline constexpr int64_t kInVain = 8, kLongestRest = 16;

// Consecutive replacements of a container by another container for the same tensors, after which the container counts
// as new at each call (automatic_dynamic.h).
inline constexpr int kReplaced = 4;

// Functions with new code which the same place creates each time (automatic_dynamic.h); segments which begin after
// exceptions (next_segment.h).
inline constexpr size_t kCodesEachTime = 2, kAfterExceptions = 4;

// Compiled-versus-eager tuning (eager_fallback_timing.h): number of segments of a timed call, calls before the tuning,
// and pairs of timed calls. Then the rest periods in calls, which double up to the maximum.
inline constexpr size_t kManySegments = 32;
inline constexpr int64_t kWarm = 24, kPairs = 3;
inline constexpr int64_t kFirstRest = 256, kLongestEager = 1 << 16, kUntilNext = 1024;

// Sizes of a loop over sizes that are compiled when they come first; the part of a compilation's time, as its inverse,
// that eager calls of later sizes may take before they are compiled; sizes that are told apart; sizes that ran eagerly
// when the user is warned (size_loops.h).
inline constexpr size_t kSizesOfLoop = 8, kMostSizes = 4096, kManySizes = 8;
inline constexpr int kPartOfCompiling = 2;

// A capture goes through pieces that are there already, to reach what follows, no more often than this (capture_run).
inline constexpr int kRepeated = 1024;

// Modules which eager fallbacks compile: the number of fallbacks without a call until a module is forgotten, and the
// maximal number of modules (nested_modules.h).
inline constexpr int64_t kForgottenAfter = 16;
inline constexpr size_t kMostModules = 256;

}  // namespace cresset::frontend::threshold
