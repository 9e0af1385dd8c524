// A CUDA device over a table of functions that only take notes: contexts, launches, errors.
#include "runtime/cuda/cuda_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/index_reports.h"

namespace cresset::runtime::cuda {
namespace {

using testing::HasSubstr;

// Function pointers hold no state, so the notes of the running test are global.
struct Notes {
  int status = 0;           // result of calls that may fail
  void* current = nullptr;  // context of the thread
  std::vector<void*> entered;
  std::vector<int64_t> parameters;
  unsigned grid[3] = {}, block[3] = {};
  void* stream = nullptr;
  int query = 0;
  unsigned host_flags = 0;
  int freed = 0;
};
Notes notes;
int context;

int attribute(int* value, int which, int) {
  *value = which == kMajor ? 9 : which == kMinor ? 0 : which == kMultiprocessors ? 132 : 1000 + which;
  return 0;
}

int launch(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void* stream,
           void**, void** extra) {
  const size_t bytes = *static_cast<size_t*>(extra[3]);
  const auto* values = static_cast<const int64_t*>(extra[1]);
  notes.parameters.assign(values, values + bytes / sizeof(int64_t));
  std::copy_n(std::initializer_list<unsigned>{gx, gy, gz}.begin(), 3, notes.grid);
  std::copy_n(std::initializer_list<unsigned>{bx, by, bz}.begin(), 3, notes.block);
  notes.stream = stream;
  return notes.status;
}

std::shared_ptr<const Driver> noting_driver() {
  auto out = std::make_shared<Driver>();
  out->error_name = [](int error, const char** name) {
    *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return 0;
  };
  out->device = [](int* device, int ordinal) { return *device = ordinal, ordinal < 2 ? 0 : 101; };
  out->device_name = [](char* name, int, int) { return std::copy_n("Noting GPU", 11, name), 0; };
  out->device_attribute = attribute;
  out->driver_version = [](int* version) { return *version = 13000, 0; };
  out->retain_primary_context = [](void** made, int) { return *made = &context, 0; };
  out->current_context = [](void** current) { return *current = notes.current, 0; };
  out->set_current_context = [](void* entered) { return notes.entered.push_back(notes.current = entered), 0; };
  out->load_library = [](void** library, const void*, int*, void**, unsigned, int*, void**, unsigned) {
    return *library = &context, notes.status;
  };
  out->library_kernel = [](void** kernel, void*, const char* name) {
    return *kernel = &context, std::string_view(name) == "there" ? 0 : 500;
  };
  out->launch_kernel = launch;
  out->allocate = [](uint64_t* address, size_t bytes) { return *address = 0x1000 + bytes, notes.status; };
  out->allocate_host = [](void** memory, size_t bytes, unsigned flags) {
    notes.host_flags = flags;
    return *memory = std::malloc(bytes), notes.status;
  };
  out->free_host = [](void* memory) { return std::free(memory), notes.freed++, 0; };
  out->query_event = [](void*) { return notes.query; };
  return out;
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override { notes = {}; }
  static std::shared_ptr<CudaDevice> open() { return CudaDevice::open(noting_driver(), 0).value(); }
};

TEST_F(CudaDeviceTest, PropertiesAreRead) {
  const auto device = open();
  const DeviceProperties& p = device->properties();
  EXPECT_EQ(p.name, "Noting GPU");
  EXPECT_EQ(p.chip, 90);
  EXPECT_EQ(p.multiprocessors, 132);
  EXPECT_EQ(p.shared_bytes, 1000 + kSharedOfBlockOptin);
  EXPECT_EQ(p.driver_version, 13000);
}

TEST_F(CudaDeviceTest, AMissingDeviceIsAReason) {
  const auto device = CudaDevice::open(noting_driver(), 5);
  ASSERT_FALSE(device.ok());
  EXPECT_THAT(device.fallback().attempted, HasSubstr("device 5"));
}

// A thread without a context keeps the primary context. A thread that is in another context has that context again
// after each piece of work.
TEST_F(CudaDeviceTest, ContextsAreEnteredWhereNeeded) {
  const auto device = open();
  EXPECT_EQ(notes.entered, std::vector<void*>{&context});
  device->allocate(8);
  EXPECT_EQ(notes.entered.size(), 1u);
  int other = 0;
  notes.current = &other;
  device->allocate(8);
  EXPECT_EQ(notes.entered, (std::vector<void*>{&context, &context, &other}));
}

TEST_F(CudaDeviceTest, LaunchesPassTheBlockOfParameters) {
  const auto device = open();
  int stream = 0;
  const int64_t parameters[] = {11, -22, 33};
  const LaunchConfig config{.grid = {7, 3, 1}, .block = {32, 8, 1}};
  device->launch({&context}, config, parameters, &stream);
  EXPECT_EQ(notes.parameters, (std::vector<int64_t>{11, -22, 33}));
  EXPECT_EQ(notes.grid[0], 7u);
  EXPECT_EQ(notes.grid[1], 3u);
  EXPECT_EQ(notes.block[1], 8u);
  EXPECT_EQ(notes.stream, &stream);
}

TEST_F(CudaDeviceTest, FailuresHaveNames) {
  const auto device = open();
  notes.status = 700;
  try {
    device->launch({&context}, {}, {}, nullptr);
    FAIL() << "a failed launch raises";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  }
  const auto loaded = device->load({KernelImage::Format::Cubin, "code", "kernel"});
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.fallback().attempted, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(CudaDeviceTest, FunctionsMayBeMissing) {
  const auto device = open();
  EXPECT_NE(device->function(&context, "there").handle, nullptr);
  EXPECT_EQ(device->function(&context, "elsewhere").handle, nullptr);
}

TEST_F(CudaDeviceTest, EventsThatAreNotReady) {
  const auto device = open();
  EXPECT_TRUE(device->is_done(nullptr));
  notes.query = kNotReady;
  EXPECT_FALSE(device->is_done(nullptr));
  notes.query = 700;
  EXPECT_THROW(device->is_done(nullptr), DeviceError);
}

TEST_F(CudaDeviceTest, ReportsAreTakenOnce) {
  {
    IndexReports reports(open(), 3);
    EXPECT_EQ(notes.host_flags, kPortable | kDeviceMapped);
    EXPECT_FALSE(reports.take());
    auto* words = static_cast<int64_t*>(reports.words());
    words[1] = -7;
    words[2] = 1 << 20;
    const auto report = reports.take();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->site, 1u);
    EXPECT_EQ(report->index, -7);
    EXPECT_FALSE(reports.take());
  }
  EXPECT_EQ(notes.freed, 1);
}

}  // namespace
}  // namespace cresset::runtime::cuda
