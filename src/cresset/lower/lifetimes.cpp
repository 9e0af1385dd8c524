#include "lower/lifetimes.h"

#include <algorithm>

namespace cresset::lower {

using runtime::TensorId;

TensorId owner(const runtime::Program& program, TensorId id) {
  while (program.tensors[id.index].home == runtime::Home::View) id = program.tensors[id.index].base;
  return id;
}

void for_each_tensor(const runtime::Step& step, const std::function<void(TensorId)>& f) {
  if (const auto* launch = std::get_if<runtime::Launch>(&step)) {
    for (TensorId id : launch->buffers) f(id);
  } else if (const auto* call = std::get_if<runtime::ExternCall>(&step)) {
    for (const runtime::ExternArg& arg : call->args) {
      if (const auto* id = std::get_if<TensorId>(&arg)) f(*id);
      if (const auto* list = std::get_if<std::vector<std::optional<TensorId>>>(&arg))
        for (const std::optional<TensorId>& id : *list)
          if (id) f(*id);
    }
    for (TensorId id : call->results)
      if (id.valid()) f(id);
  } else if (const auto* copy = std::get_if<runtime::Copy>(&step)) {
    f(copy->from);
    f(copy->to);
  }
}

std::vector<Lifetime> lifetimes(const runtime::Program& program, const std::vector<Alias>& aliases) {
  std::vector<Lifetime> out(program.tensors.size());
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    for_each_tensor(program.steps[s], [&](TensorId id) {
      Lifetime& life = out[owner(program, id).index];
      life.first = std::min(life.first, s);
      life.last = std::max(life.last, s);
    });
  }
  for (TensorId id : program.outputs) out[owner(program, id).index].last = Lifetime::kEnd;
  // Aliases are sorted with results of later calls first, so a single sweep carries lifetimes through chains.
  for (const Alias& alias : aliases) {
    Lifetime& life = out[owner(program, alias.argument).index];
    life.last = std::max(life.last, out[owner(program, alias.result).index].last);
  }
  return out;
}

}  // namespace cresset::lower
