#include "bridge/aten/described_traits.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "bridge/aten/op_schema.h"

namespace cresset::bridge {
namespace {

ops::OpTraits read(const c10::OperatorHandle& handle) {
  ops::OpTraits out;
  out.draws = handle.hasTag(at::Tag::nondeterministic_seeded);
  const std::vector<c10::Argument>& arguments = handle.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arg_type(arguments[i]) == ArgType::Float &&
        (arguments[i].name() == "dropout_p" || arguments[i].name() == "dropout"))
      out.dropout = static_cast<int8_t>(i);
  return out;
}

}  // namespace

ops::OpTraits described_traits(graph::OpId op) {
  static std::shared_mutex mutex;
  static auto* const known = new std::unordered_map<uint32_t, ops::OpTraits>;
  {
    const std::shared_lock lock(mutex);
    if (const auto found = known->find(op.index); found != known->end()) return found->second;
  }
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  if (!handle || !handle->hasSchema()) return {};
  const ops::OpTraits out = read(*handle);
  // Users may define an operator of their own library again, with other tags.
  if (!graph::op_name(op).starts_with("aten::")) return out;
  const std::unique_lock lock(mutex);
  return known->emplace(op.index, out).first->second;
}

}  // namespace cresset::bridge
