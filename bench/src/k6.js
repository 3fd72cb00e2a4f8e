// The load of toll-bench as a k6 script; what differs between runs comes as environment.
import http from 'k6/http';

const connections = Number(__ENV.CONNECTIONS);
const duration = `${__ENV.SECONDS}s`;
const rate = Number(__ENV.RATE);

export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ['p(50)', 'p(99)', 'p(99.9)'],
  scenarios: {
    load: rate > 0
      ? { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration,
          preAllocatedVUs: connections, maxVUs: Number(__ENV.MOST_CONNECTIONS), gracefulStop: '1s' }
      : { executor: 'constant-vus', vus: connections, duration, gracefulStop: '1s' },
  },
};

export default function () {
  http.get(__ENV.TARGET);
}

export function handleSummary(data) {
  return { stdout: JSON.stringify(data.metrics) };
}
