// Recurrent layers as whole operators, called through ATen. The steps are a loop inside the operator, so the program
// does not depend on the length. Without gradients the layer is captured as a whole
// (bridge/decompositions/recurrent_layers.h). With gradients, the steps of a layer in one direction are an operator,
// and so is their derivative (bridge/decompositions/recurrent_steps.h).
#include "ops/recurrent.h"

#include "ops/families.h"
#include "ops/rule_helpers.h"

namespace cresset::ops {
namespace {

using graph::TensorType;

// (output, final state for each initial state). `flags` is the position of has_biases.
Result<Types> layers(ShapeContext& shapes, const OpArgs& args, const std::vector<const TensorType*>& states,
                     size_t flags, Sizes steps, bool time_is_second) {
  const TensorType& input = args.tensor(0);
  const auto weights = args.values(flags - 1);
  const bool both_ways = args.flag(flags + 4);
  if (weights.size() < 2 || !weights[0] || !weights[1]) return shapes.invalid("needs weights");
  const TensorType &from_input = args.type(*weights[0]), &from_state = args.type(*weights[1]);
  if (from_input.rank() != 2 || from_state.rank() != 2) return shapes.invalid("weights need 2 dimensions");
  for (const TensorType* state : states)
    if (state->rank() != 3 || state->dtype != input.dtype)
      return shapes.invalid("states need 3 dimensions and one dtype");
  if (!shapes.require_equal(input.sizes.back(), from_input.sizes[1]) ||
      !shapes.require_equal(states[0]->sizes[2], from_state.sizes[1]))
    return shapes.invalid("the weights do not fit");
  sym::ExprId features = states[0]->sizes[2];
  if (both_ways) features = shapes.pool().mul(features, shapes.pool().constant(2));
  steps.push_back(features);
  Types out = one(contiguous_like(shapes, input, std::move(steps)));
  if (time_is_second) {
    std::swap(out[0].sizes[0], out[0].sizes[1]);
    std::swap(out[0].strides[0], out[0].strides[1]);
  }
  for (const TensorType* state : states) out.push_back(contiguous_like(shapes, *state, state->sizes));
  return out;
}

// Input (length, batch, features), or (batch, length, features) with batch_first.
Result<Types> of_sequences(ShapeContext& shapes, const OpArgs& args, const std::vector<const TensorType*>& states) {
  const TensorType& input = args.tensor(0);
  const bool batch_first = args.flag(8);
  if (input.rank() != 3) return shapes.invalid("needs an input of 3 dimensions");
  const sym::ExprId batch = input.sizes[batch_first ? 0 : 1], length = input.sizes[batch_first ? 1 : 0];
  for (const TensorType* state : states)
    if (state->rank() != 3 || !shapes.require_equal(state->sizes[1], batch))
      return shapes.invalid("a state has another batch size");
  if (!shapes.require(shapes.pool().ge(length, shapes.pool().constant(1)))) return shapes.invalid("needs a step");
  return layers(shapes, args, states, 3, {length, batch}, batch_first);
}

// Packed sequences: the rows of all steps, and the number of rows of each step.
Result<Types> of_packed(ShapeContext& shapes, const OpArgs& args, const std::vector<const TensorType*>& states) {
  const TensorType& input = args.tensor(0);
  if (input.rank() != 2) return shapes.invalid("needs packed rows");
  return layers(shapes, args, states, 4, {input.sizes[0]}, false);
}

// lstm's states are a list of two; the other layers have a single state.
Result<std::vector<const TensorType*>> states_of_lstm(ShapeContext& shapes, const OpArgs& args, size_t position) {
  std::vector<const TensorType*> out;
  for (const graph::OptionalValue& value : args.values(position))
    if (value) out.push_back(&args.type(*value));
  if (out.size() != 2) return shapes.invalid("needs two states");
  return out;
}

Result<Types> lstm_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(const auto states, states_of_lstm(shapes, args, 1));
  return of_sequences(shapes, args, states);
}
Result<Types> packed_lstm_shape(ShapeContext& shapes, const OpArgs& args) {
  CRESSET_TRY(const auto states, states_of_lstm(shapes, args, 2));
  return of_packed(shapes, args, states);
}
Result<Types> rnn_shape(ShapeContext& shapes, const OpArgs& args) {
  return of_sequences(shapes, args, {&args.tensor(1)});
}
Result<Types> packed_rnn_shape(ShapeContext& shapes, const OpArgs& args) {
  return of_packed(shapes, args, {&args.tensor(2)});
}

Result<Types> steps_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &gates = args.tensor(0), &state = args.tensor(1);
  if (gates.rank() != 3 || state.rank() != 2) return shapes.invalid("needs gates of 3 dimensions and a state of 2");
  const sym::ExprId length = gates.sizes[0], batch = gates.sizes[1], features = state.sizes[1];
  if (!shapes.require_equal(state.sizes[0], batch)) return shapes.invalid("a state has another batch size");
  const sym::ExprId kept =
      shapes.pool().mul(features, shapes.pool().constant(kept_of(RecurrentKind{args.constant(5)})));
  Types out = one(contiguous_like(shapes, gates, {length, batch, features}));
  out.push_back(contiguous_like(shapes, gates, {length, batch, kept}));
  return out;
}

Result<Types> steps_backward_shape(ShapeContext& shapes, const OpArgs& args) {
  const TensorType &out = args.tensor(2), &state = args.tensor(4), &weight = args.tensor(6);
  Types types = one(contiguous_like(shapes, out, {out.sizes[0], out.sizes[1], weight.sizes[0]}));
  types.push_back(contiguous_like(shapes, state, state.sizes));
  types.push_back(args.is_none(5) ? contiguous_like(shapes, state, {shapes.pool().constant(0)})
                                  : contiguous_like(shapes, state, state.sizes));
  return types;
}

// torch tags the layers as random for their dropout. A layer with dropout in training is captured in its steps
// (bridge/decompositions/recurrent_layers.h), so that the nodes of these operators draw nothing.
#define CRESSET_RNN(name)                                                                               \
  {.schema = "aten::" name                                                                              \
             ".input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float " \
             "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",          \
   .op_class = OpClass::Extern,                                                                         \
   .shape = rnn_shape},                                                                                 \
  {                                                                                                     \
    .schema = "aten::" name                                                                             \
              ".data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "    \
              "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",     \
    .op_class = OpClass::Extern, .shape = packed_rnn_shape                                              \
  }

constexpr OpDef kRecurrentOps[] = {
    {.schema = "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
               "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Extern,
     .shape = lstm_shape},
    {.schema = "aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int "
               "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Extern,
     .shape = packed_lstm_shape},
    {.schema = "cresset::recurrent_steps(Tensor gates, Tensor state, Tensor? cell, Tensor weight, Tensor? bias, int "
               "kind, bool reverse) -> (Tensor, Tensor)",
     .op_class = OpClass::Extern,
     .shape = steps_shape},
    {.schema = "cresset::recurrent_steps_backward(Tensor gradient, Tensor? cell_gradient, Tensor out, Tensor kept, "
               "Tensor state, Tensor? cell, Tensor weight, int kind, bool reverse) -> (Tensor, Tensor, Tensor)",
     .op_class = OpClass::Extern,
     .shape = steps_backward_shape},
    CRESSET_RNN("gru"),
    CRESSET_RNN("rnn_tanh"),
    CRESSET_RNN("rnn_relu"),
};
#undef CRESSET_RNN

}  // namespace

std::span<const OpDef> recurrent_ops() { return kRecurrentOps; }

}  // namespace cresset::ops
