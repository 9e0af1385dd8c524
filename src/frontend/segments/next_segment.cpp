// Cache entries for the code after a graph break.
#include "frontend/segments/next_segment.h"

#include <tuple>
#include <unordered_set>

#include "base/log.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/feedback/thresholds.h"
#include "frontend/variants/automatic_dynamic.h"
#include "frontend/variants/limits.h"

namespace cresset::frontend {

PyRef outcome(PyObject* value, PyObject* exception) {
  return checked(exception != nullptr ? Py_BuildValue("{s:O}", "raised", exception)
                                      : Py_BuildValue("{s:O}", "value", value));
}

bool begins_with(Variant& piece, const TorchState& state, PyObject* frames, PyObject* kwargs) {
  CallLeaves leaves;
  if (piece.state != state || !are_alive(piece.modes) || !match(piece.args, frames, leaves, nullptr) ||
      !match(piece.kwargs, kwargs, leaves, nullptr) || !piece.facts.holds(nullptr) ||
      !piece.facts.gather(leaves, nullptr))
    return false;
  std::vector<int64_t> symbols(piece.symbol_count);
  return piece.entry == nullptr || piece.entry->matches(leaves.tensors, leaves.ints, symbols.data(), nullptr);
}

std::shared_ptr<Variant> make_successor(const CompileOptions& options, const Break& last, const TorchState& state,
                                        PyObject* frames, PyObject* kwargs, bool numbers) {
  // The contents of exceptions tend to differ from call to call.
  if (PyDict_GetItemString(kwargs, "raised") != nullptr && last.point->successors.size() >= threshold::kAfterExceptions)
    return nullptr;
  if (is_other_code_each_time(last.point->successors, PyDict_GetItemString(kwargs, "value"))) return nullptr;
  expect_result(last.point->varying, kwargs);
  std::unordered_set<PyObject*> constants;
  collect_constants(last.frames, constants);
  for (const PyRef& constant : last.constants) constants.insert(constant.get());
  const bool dynamic = options.dynamic && !last.point->plain_sizes;
  SpecBuilder builder(dynamic && numbers ? &last.point->varying.ints : nullptr, /*any_object=*/true);
  builder.same_at_every_call = [&](PyObject* object) { return constants.count(object) != 0; };
  tell_what_varies(last.point->varying, builder);
  auto variant = std::make_shared<Variant>();
  variant->state = state;
  variant->modes = modes_now();
  try {
    std::tie(variant->args, variant->kwargs) = builder.build_both(frames, "frames", kwargs, "");
    builder.same_at_every_call = nullptr;
    builder.varying_objects = nullptr;
    take_state(variant->facts, last.point->varying, builder, dynamic);
  } catch (const UnsupportedArgument& e) {
    CRESSET_LOG(Recompiles, "no piece can begin at " + last.point->place.text() + ": " + e.path + " of type " +
                                e.type_name + " cannot be guarded");
    return nullptr;
  }
  if (last.point->worth.exhausted() || !has_room(*last.point, variant->args, options.successor_limit))
    return warn_too_many_successors(*last.point, options.successor_limit), nullptr;
  return variant;
}

}  // namespace cresset::frontend
