// Runs graphile-worker until its input ends, and says how many jobs began since it last said so.
const { run, runMigrations } = require("graphile-worker");
const { Logger } = require("graphile-worker");

const connectionString = process.env.BENCH_DSN;
const quiet = new Logger(() => () => {});

let began = 0;
function noop() {
  if (began++ === 0) {
    setImmediate(() => {
      process.stdout.write(began + "\n");
      began = 0;
    });
  }
}

async function main() {
  if (process.env.BENCH_MIGRATE) {
    await runMigrations({ connectionString, logger: quiet });
    return;
  }
  const runner = await run({
    logger: quiet,
    noHandleSignals: true,
    taskList: { noop },
    preset: {
      worker: {
        connectionString,
        concurrentJobs: 24,
        maxPoolSize: 24,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  process.stdin.on("end", () => runner.stop().then(() => process.exit(0)));
  process.stdin.resume();
  await runner.promise;
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
