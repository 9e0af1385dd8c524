// The trace tensors of a capture which are alive.
//
// Invariant: each trace tensor is in the list from its construction to its destruction, which may happen on any thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "bridge/capture/storage_id.h"

namespace cresset::bridge {

class TraceTensor;

class LiveTensors {
 public:
  uint64_t enlist(TraceTensor& tensor);  // returns the tensor's serial number
  void strike(TraceTensor& tensor);
  uint64_t serial() const { return serial_; }  // number of trace tensors made so far
  // Includes proxy tensors which only the capture itself holds.
  std::vector<at::Tensor> all() const;
  // The tensors with more references than `own`, the capture's own references, by proxy tensor.
  std::vector<at::Tensor> held(const std::unordered_map<TraceTensor*, int64_t>& own) const;
  bool any_of_storage(StorageId storage) const;

 private:
  mutable std::mutex mutex_;
  std::vector<TraceTensor*> live_;  // includes proxy tensors
  uint64_t serial_ = 0;
};

}  // namespace cresset::bridge
