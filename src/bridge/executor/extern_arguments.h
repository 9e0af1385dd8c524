// The tensors among the arguments of an extern call.
#pragma once

#include "runtime/program.h"

namespace cresset::bridge {

// Calls f(TensorId) for every tensor which an extern call reads.
template <class F>
void for_each_argument(const runtime::ExternCall& call, F&& f) {
  for (const runtime::ExternArg& arg : call.args) {
    if (const auto* id = std::get_if<runtime::TensorId>(&arg)) f(*id);
    if (const auto* list = std::get_if<std::vector<std::optional<runtime::TensorId>>>(&arg))
      for (const std::optional<runtime::TensorId>& id : *list)
        if (id) f(*id);
  }
}

}  // namespace cresset::bridge
