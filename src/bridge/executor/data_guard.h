// Guards on numbers which a program read from tensor data. The part of the graph which computes the number is compiled
// separately.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/capture/capture.h"
#include "bridge/executor/executor.h"

namespace cresset::bridge {

// Computes the number for given arguments and compares it with the captured number.
class DataGuard {
 public:
  // `slots`: index of each symbol's value in the array passed to holds().
  DataGuard(DataRead read, const std::vector<at::Tensor>& constants,
            const std::unordered_map<sym::VarId, uint32_t>& slots);

  at::Scalar value(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;
  bool holds(c10::ArrayRef<at::Tensor> inputs, const int64_t* symbols) const;
  const std::string& location() const { return location_; }

 private:
  std::unique_ptr<Executor> executor_;
  std::vector<uint32_t> symbol_slots_;
  at::Scalar expected_;
  std::string location_;
};

}  // namespace cresset::bridge
