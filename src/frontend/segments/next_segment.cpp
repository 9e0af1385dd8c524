// Cache entries for the code after a graph break.
#include "frontend/segments/next_segment.h"

#include <tuple>
#include <unordered_set>

#include "base/log.h"
#include "frontend/cache_entries/automatic_dynamic.h"
#include "frontend/cache_entries/limits.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/feedback/thresholds.h"

namespace cresset::frontend {

PyRef outcome(PyObject* value, PyObject* exception) {
  return checked(exception != nullptr ? Py_BuildValue("{s:O}", "raised", exception)
                                      : Py_BuildValue("{s:O}", "value", value));
}

bool begins_with(CacheEntry& segment, const TorchState& state, PyObject* frames, PyObject* kwargs) {
  CallLeaves leaves;
  if (segment.state != state || !are_alive(segment.modes) || !match(segment.args, frames, leaves, nullptr) ||
      !match(segment.kwargs, kwargs, leaves, nullptr) || !segment.guards.holds(nullptr) ||
      !segment.guards.gather(leaves, nullptr))
    return false;
  std::vector<int64_t> symbols(segment.symbol_count);
  return segment.program == nullptr || segment.program->matches(leaves.tensors, leaves.ints, symbols.data(), nullptr);
}

std::shared_ptr<CacheEntry> make_resume_entry(const CompileOptions& options, const Break& last, const TorchState& state,
                                              PyObject* frames, PyObject* kwargs, bool numbers) {
  // The contents of exceptions tend to differ from call to call.
  if (PyDict_GetItemString(kwargs, "raised") != nullptr &&
      last.point->resume_entries.size() >= threshold::kAfterExceptions)
    return nullptr;
  if (is_other_code_each_time(last.point->resume_entries, PyDict_GetItemString(kwargs, "value"))) return nullptr;
  expect_result(last.point->automatic_dynamic, kwargs);
  std::unordered_set<PyObject*> constants;
  collect_constants(last.frames, constants);
  for (const PyRef& constant : last.constants) constants.insert(constant.get());
  const bool dynamic = options.dynamic && !last.point->plain_sizes;
  SpecBuilder builder(dynamic && numbers ? &last.point->automatic_dynamic.ints : nullptr, /*any_object=*/true);
  builder.same_at_every_call = [&](PyObject* object) { return constants.count(object) != 0; };
  tell_what_varies(last.point->automatic_dynamic, builder);
  auto entry = std::make_shared<CacheEntry>();
  entry->state = state;
  entry->modes = modes_now();
  try {
    std::tie(entry->args, entry->kwargs) = builder.build_both(frames, "frames", kwargs, "");
    builder.same_at_every_call = nullptr;
    builder.varying_objects = nullptr;
    take_state(entry->guards, last.point->automatic_dynamic, builder, dynamic);
  } catch (const UnsupportedArgument& e) {
    CRESSET_LOG(GraphBreaks, "no graph segment can begin at " + last.point->place.text() + ": " + e.path + " of type " +
                                 e.type_name + " cannot be guarded");
    return nullptr;
  }
  if (last.point->worth.exhausted() || !has_room(*last.point, entry->args, options.resume_entry_limit))
    return warn_too_many_resume_entries(*last.point, options.resume_entry_limit), nullptr;
  return entry;
}

}  // namespace cresset::frontend
