#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include "runtime/device.h"

namespace cresset::runtime::cuda {
namespace {

Fallback no_driver(const std::string& why) {
  return {FallbackReason::CodegenFailed, "opening the CUDA driver: " + why, "install a driver of CUDA 12.3 or newer"};
}

constexpr int kOldestVersion = 12030;

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::open(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return no_driver(std::string(library) + " is not there");
  auto out = std::make_shared<Driver>();
#define CRESSET_CUDA(symbol, member, parameters)                             \
  out->member = reinterpret_cast<int(*) parameters>(dlsym(handle, #symbol)); \
  if (out->member == nullptr) return no_driver("it has no " #symbol);
#define CRESSET_CUDA_GRAPH(symbol, member, parameters)                       \
  out->member = reinterpret_cast<int(*) parameters>(dlsym(handle, #symbol)); \
  out->has_graphs &= out->member != nullptr;
#include "runtime/cuda/driver.def"
#undef CRESSET_CUDA_GRAPH
#undef CRESSET_CUDA
  int version = 0, devices = 0;
  if (const int status = out->init(0); status != 0) return no_driver("cuInit gives " + std::to_string(status));
  if (out->driver_version(&version) != 0 || version < kOldestVersion)
    return no_driver("its version is " + std::to_string(version));
  if (out->device_count(&devices) != 0 || devices == 0) return no_driver("there is no device");
  return std::shared_ptr<const Driver>(std::move(out));
}

const Result<std::shared_ptr<const Driver>>& Driver::get() {
  static const auto* driver = new Result<std::shared_ptr<const Driver>>(open());
  return *driver;
}

void Driver::check(int status, const char* what) const {
  if (status == 0) return;
  const char* name = nullptr;
  if (error_name == nullptr || error_name(status, &name) != 0 || name == nullptr) name = "unknown error";
  throw DeviceError(std::string(what) + ": " + name + " (" + std::to_string(status) + ")");
}

}  // namespace cresset::runtime::cuda
