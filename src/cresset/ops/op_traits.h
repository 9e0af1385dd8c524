// Properties of an operator apart from its rules: they decide what may be done with its calls. An operator with rules
// has them in its row (op_def.h), beside these rules. ops/without_rules.cpp has a row for each operator without rules
// that needs one. The library which runs the operators adds the properties that its schemas and tags say
// (library_traits.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "graph/op_name.h"

namespace cresset::ops {

// The cause of an operator's data-dependent errors, as a pattern of its arguments.
enum class Raises : uint8_t {
  Never,
  List,            // (self, indices, ...): an index tensor for each dimension
  AlongDim,        // (self, dim, indices, ...)
  AlongDimEither,  // the same; negative indices count from the end
  Rows,            // (table, indices, ...)
  Elements,        // (self, indices, ...): indices into self's flattened elements
  Targets,         // (self, classes, weight, reduction, ignored, ...)
  Divisor,         // (self, other, ...): of integers
  Position,        // (self, dim, index): a data-dependent index
  Anything,        // any other cause: the operator must run
  Asked,           // the same, if its last argument requests the check
  Unknown,         // an operator of ATen about which no row says anything
};

// Whether elements of tensors (or nothing) make the operator raise, and a device could find that after the call.
inline bool raises_for_data_alone(Raises raises) { return raises <= Raises::Divisor; }

// How the generic rule infers the types of the results (bridge/capture/meta_shape_rule.h).
enum class Inference : uint8_t {
  Meta,       // by the meta kernel, or as its tag or small tensors tell
  RunsOften,  // by runs on zeros: the meta kernel is missing, or its sizes, strides or dtypes are not the real kernel's
  RunsOnce,   // by a run at the caller's sizes: the sizes depend on data, or the operator writes to its arguments
  RunsOnceInTraining,  // the same in grad mode alone, where further results are for the backward pass
};

// Which elements the result has.
enum class Elements : uint8_t {
  Computed,
  Kept,           // those of argument 0 at the same indices, perhaps cast
  Reshaped,       // those of argument 0 in row-major order, at indices of other sizes
  Reinterpreted,  // those of argument 0's memory, read as another dtype
};

// Which arguments the kernel checks before it reads memory.
enum class Checks : uint8_t {
  ByName,      // torch's names tell: internal operators trust their callers, derivatives check nothing
  Everything,  // sizes and indices
  NoSizes,     // an operator for callers which have checked the sizes
  Nothing,
};

struct OpTraits {
  Raises raises = Raises::Never;
  Inference inference = Inference::Meta;
  Elements elements = Elements::Computed;
  Checks checks = Checks::ByName;
  bool draws = false;    // random numbers
  int8_t dropout = -1;   // the argument whose value 0 means that the operator draws nothing
  int8_t pivots = -1;    // the argument with the positions of rows, from 1, which a factorization swapped
  bool foreign = false;  // of a library which is not torch: it may have any effect
  // The result depends on the positions of argument 0's elements in memory.
  bool by_memory = false;
  // Argument 0 gives the layout and the dtype; its elements are not read, and the result is not zero.
  bool of_layout = false;
  bool uniform = false;       // all elements of the result are a number given to the operator; the sizes are arguments
  bool for_integers = false;  // accepts only integers
  bool at_other_indices = false;  // Pointwise: an element of the result needs elements of its operands at other indices
  bool calls_others = false;  // the kernel calls operators by the dispatcher, such as products, which autocast may cast
  bool mixes_devices = false;  // accepts tensors of several devices
  bool exact_doubles = false;  // Pointwise: a device without accurate code for rare functions of doubles lacks this one
  bool special_dtypes = false;  // the shape rule serves dtypes of ops/special_dtypes.h too
  bool of_matrices = false;     // linear algebra, whose sizes on zeros (matrices of rank 0) are no general answer
};

// Thread-safe.
OpTraits traits(graph::OpId op);

// Whether the result has argument 0's elements in row-major order.
inline bool hands_on(graph::OpId op) {
  const Elements found = traits(op).elements;
  return found == Elements::Kept || found == Elements::Reshaped;
}

// A row for an operator without rules.
struct TraitRow {
  std::string_view name;  // "aten::linalg_eig"
  OpTraits traits;
};
std::span<const TraitRow> rows_without_rules();

}  // namespace cresset::ops
