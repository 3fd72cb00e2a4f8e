//! Finds out what serves the airline's database, of what was planned and of the programs that were found.

use toll_lab::artifacts::Artifact;
use toll_lab::{AirlineDatabase, Program};

use super::findings::DatabaseServer;
use crate::plan::Plan;
use crate::store::RunRecord;

/// The server of the airline's database; none where the run has no such database.
pub fn database(run: &RunRecord) -> Option<DatabaseServer> {
    let version = |artifact| run.host.artifact(artifact).map(str::to_owned);
    match server(&run.plan)? {
        toll_lab::DatabaseServer::Postgres => {
            version(Artifact::Postgres).map(|version| DatabaseServer::Postgres { version })
        }
        // Where both are there, the lab takes `mongod`.
        toll_lab::DatabaseServer::MongoDb => {
            let mongod =
                version(Artifact::Mongod).map(|version| DatabaseServer::MongoDb { version });
            let stand_in = version(Artifact::MongoStandIn);
            mongod.or(stand_in.map(|version| DatabaseServer::StandIn { version }))
        }
    }
}

/// Whether the run's one database server is this artifact, which the manifest then names once.
pub fn is_database(server: &DatabaseServer, artifact: Artifact) -> bool {
    match server {
        DatabaseServer::Postgres { .. } => artifact == Artifact::Postgres,
        DatabaseServer::MongoDb { .. } | DatabaseServer::StandIn { .. } => {
            matches!(artifact, Artifact::Mongod | Artifact::MongoStandIn)
        }
    }
}

fn server(plan: &Plan) -> Option<toll_lab::DatabaseServer> {
    let mut services = plan.ready().flat_map(|(_, deployment)| &deployment.services);
    services.find_map(|service| match service.program {
        Program::AirlineDatabase(AirlineDatabase { server, .. }) => Some(server),
        _ => None,
    })
}
