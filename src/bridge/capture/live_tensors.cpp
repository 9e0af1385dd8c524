#include "bridge/capture/live_tensors.h"

#include <algorithm>

#include "bridge/capture/trace_tensor.h"

namespace cresset::bridge {
namespace {

// A strong reference, unless the tensor is dying on another thread at this moment.
at::Tensor locked(TraceTensor* tensor) {
  c10::raw::weak_intrusive_ptr::incref(tensor);
  const auto weak = c10::weak_intrusive_ptr<c10::TensorImpl>::reclaim(tensor);
  c10::intrusive_ptr<c10::TensorImpl> strong = weak.lock();
  return strong ? at::Tensor(std::move(strong)) : at::Tensor();
}

}  // namespace

uint64_t LiveTensors::enlist(TraceTensor& tensor) {
  const std::lock_guard lock(mutex_);
  tensor.live_position_ = live_.size();
  live_.push_back(&tensor);
  return serial_++;
}

void LiveTensors::strike(TraceTensor& tensor) {
  const std::lock_guard lock(mutex_);
  live_[tensor.live_position_] = live_.back();
  live_[tensor.live_position_]->live_position_ = tensor.live_position_;
  live_.pop_back();
}

std::vector<at::Tensor> LiveTensors::all() const {
  std::vector<at::Tensor> out;
  const std::lock_guard lock(mutex_);
  for (TraceTensor* tensor : live_)
    if (at::Tensor strong = locked(tensor); strong.defined()) out.push_back(std::move(strong));
  return out;
}

std::vector<at::Tensor> LiveTensors::held(const std::unordered_map<TraceTensor*, int64_t>& own) const {
  std::vector<at::Tensor> out;
  const std::lock_guard lock(mutex_);
  for (TraceTensor* tensor : live_) {
    at::Tensor strong = locked(tensor);
    if (!strong.defined()) continue;
    const auto mine = own.find(tensor);
    if (mine == own.end() || strong.use_count() > static_cast<size_t>(mine->second) + 1)
      out.push_back(std::move(strong));
  }
  return out;
}

bool LiveTensors::any_of_storage(StorageId storage) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(live_.begin(), live_.end(),
                     [&](const TraceTensor* tensor) { return tensor->storage_id() == storage; });
}

}  // namespace cresset::bridge
