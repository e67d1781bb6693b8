// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which job a rank belongs to: the variables of torchrun, mpirun and srun, their precedence, and contradictions.
#include "beeline/core/launcher.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>

#include "beeline/core/config.hpp"
#include "beeline/core/error.hpp"

namespace beeline {

namespace {

using Variables = std::map<std::string, std::string>;

const Variables torchrun = {
    {"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "1"},           {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"},
    {"MASTER_ADDR", "localhost"},    {"MASTER_PORT", "29500"}};
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                            {"PMIX_NAMESPACE", "77"}};
const Variables hydra = {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}};
const Variables srun = {{"SLURM_PROCID", "4"},         {"SLURM_NTASKS", "9"}, {"SLURM_STEP_NUM_TASKS", "5"},
                        {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}};

class LauncherTest : public ::testing::Test {
 protected:
  LauncherTest() { ::clearenv(); }
  ~LauncherTest() override { ::clearenv(); }
  static void set(const Variables& variables) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  static Place found(const Variables& variables) {
    ::clearenv();
    set(variables);
    return find_place();
  }
  static std::string error(const Variables& variables) {
    try {
      static_cast<void>(found(variables));
    } catch (const Error& error) {
      EXPECT_EQ(Status::invalid_argument, error.code());
      return error.what();
    }
    return "no error";
  }
  static Variables with(Variables variables, const Variables& more) {
    for (const auto& [name, value] : more) variables[name] = value;
    return variables;
  }
};

void expect(const Place& place, const std::string& name, int rank, int size) {
  EXPECT_EQ(name, place.launcher.name);
  EXPECT_EQ(rank, place.rank);
  EXPECT_EQ(size, place.size);
}

TEST_F(LauncherTest, WithoutOneItIsAWorldOfOne) {
  expect(found({}), "none", 0, 1);
  EXPECT_EQ("", found({}).launcher.job);
}

TEST_F(LauncherTest, EachIsRecognised) {
  expect(found(torchrun), "torchrun", 1, 2);
  expect(found(open_mpi), "mpirun", 2, 3);
  expect(found(hydra), "mpirun", 3, 4);
  expect(found(srun), "srun", 4, 5);
  for (const Variables& variables : {torchrun, open_mpi, hydra, srun}) EXPECT_TRUE(found(variables).launcher.one_host);
}

TEST_F(LauncherTest, TheInnermostComesFirstAndBeelinesBeforeAll) {
  const Variables mpi_in_slurm = with(srun, open_mpi), torch_in_all = with(mpi_in_slurm, torchrun);
  expect(found(with(srun, hydra)), "mpirun", 3, 4);
  expect(found(mpi_in_slurm), "mpirun", 2, 3);
  expect(found(torch_in_all), "torchrun", 1, 2);
  for (const char* own : {"BEELINE_RANK", "BEELINE_SIZE", "BEELINE_RENDEZVOUS", "BEELINE_THREADS"})
    expect(found(with(torch_in_all, {{own, "1"}})), "beeline", 0, 1);
  expect(found(with(torch_in_all, {{"BEELINE_THREADS", "0"}, {"BEELINE_TOKEN", "secret"}})), "torchrun", 1, 2);
}

TEST_F(LauncherTest, ConfigTakesRankAndSizeFromIt) {
  set(with(srun, {{"BEELINE_DEVICE", "cpu"}}));
  const Config config = Config::from_environment();
  EXPECT_EQ(4, config.rank);
  EXPECT_EQ(5, config.size);
  EXPECT_EQ("srun", config.launcher.name);
  set({{"BEELINE_SIZE", "1"}});
  EXPECT_EQ(0, Config::from_environment().rank);
  EXPECT_EQ(1, Config::from_environment().size);
}

TEST_F(LauncherTest, ABatchScriptIsNoStep) {
  Variables batch = srun;
  batch.erase("SLURM_STEP_ID");
  expect(found(batch), "none", 0, 1);
}

TEST_F(LauncherTest, TwoJobsHaveDifferentIdentities) {
  const auto job = [](const Variables& variables) { return found(variables).launcher.job; };
  EXPECT_EQ(job(torchrun), job(with(torchrun, {{"RANK", "0"}})));
  EXPECT_NE(job(torchrun), job(with(torchrun, {{"MASTER_PORT", "29501"}})));
  EXPECT_NE(job(torchrun), job(with(torchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}})));
  EXPECT_NE(job(open_mpi), job(with(open_mpi, {{"PMIX_NAMESPACE", "78"}})));
  EXPECT_NE(job(srun), job(with(srun, {{"SLURM_STEP_ID", "1"}})));
  EXPECT_EQ(job(hydra), job(with(hydra, {{"PMI_RANK", "0"}})));
  EXPECT_EQ(std::string::npos, job(with(torchrun, {{"TORCHELASTIC_RUN_ID", "two\nlines"}})).find('\n'));
}

TEST_F(LauncherTest, SeveralHostsAreKnownWithRankZerosAddress) {
  const Place torch = found(with(torchrun, {{"LOCAL_WORLD_SIZE", "1"}}));
  EXPECT_FALSE(torch.launcher.one_host);
  EXPECT_EQ("localhost:29501", torch.launcher.address);
  const Place slurm = found(with(srun, {{"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}}));
  EXPECT_FALSE(slurm.launcher.one_host);
  EXPECT_EQ("10.0.0.1", slurm.launcher.address);
  for (const char* const master_address : {"fd00::2", "[fd00::2]"}) {
    const Variables master = {
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"MASTER_ADDR", master_address}, {"MASTER_PORT", "80"}};
    EXPECT_EQ("[fd00::2]:81", found(with(open_mpi, master)).launcher.address);
  }
  EXPECT_FALSE(found(with(hydra, {{"MPI_LOCALNRANKS", "1"}})).launcher.one_host);
  const auto mpirun_at = [](const char* uri) {
    return found(with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_MCA_orte_hnp_uri", uri}})).launcher;
  };
  EXPECT_EQ("10.0.0.1", mpirun_at("7.0;tcp://10.0.0.1:42699").address);
  EXPECT_EQ("10.0.0.1", mpirun_at("7.0;tcp://10.0.0.1,172.17.0.1:42699").address);
  EXPECT_EQ("fd00::1", mpirun_at("7.0;tcp6://[fd00::1]:42699").address);
  EXPECT_EQ("", mpirun_at("").address);
}

TEST_F(LauncherTest, BeelinesOwnVariablesWithRankZerosAddressAreOfSeveralHosts) {
  Variables own = {{"BEELINE_RANK", "1"}, {"BEELINE_SIZE", "2"}, {"MASTER_ADDR", "job-0.job"}, {"MASTER_PORT", "80"}};
  const Launcher container = found(own).launcher;
  EXPECT_FALSE(container.one_host);
  EXPECT_EQ("job-0.job:81", container.address);
  EXPECT_EQ(container.job, found(with(own, {{"BEELINE_RANK", "0"}})).launcher.job);
  EXPECT_TRUE(found(with(own, {{"BEELINE_RENDEZVOUS", "127.0.0.1:9"}})).launcher.one_host);
  own.erase("MASTER_PORT");
  EXPECT_EQ("", found(own).launcher.job);
}

TEST_F(LauncherTest, WhatIsMissingOrContradictsIsNamed) {
  Variables no_size = torchrun;
  no_size.erase("WORLD_SIZE");
  EXPECT_NE(std::string::npos, error(no_size).find("WORLD_SIZE is not set")) << error(no_size);
  const std::pair<Variables, std::string> cases[] = {
      {with(torchrun, {{"RANK", "2"}}), "RANK=\"2\": expected a number from 0 to 1"},
      {with(torchrun, {{"LOCAL_WORLD_SIZE", "3"}}), "LOCAL_WORLD_SIZE=\"3\": expected a number from 1 to 2"},
      {with(open_mpi, {{"OMPI_COMM_WORLD_SIZE", "1025"}}),
       "OMPI_COMM_WORLD_SIZE=\"1025\": expected a number from 1 to 1024"},
      {with(hydra, {{"PMI_RANK", "one"}}), "PMI_RANK=\"one\""},
      {with(srun, {{"SLURM_STEP_NUM_TASKS", "4"}}), "SLURM_PROCID=\"4\": expected a number from 0 to 3"},
      {with(srun, {{"SLURM_STEP_NUM_NODES", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "65535"}}), "MASTER_PORT"}};
  for (const auto& [variables, reason] : cases)
    EXPECT_NE(std::string::npos, error(variables).find(reason)) << error(variables);
}

}  // namespace

}  // namespace beeline
